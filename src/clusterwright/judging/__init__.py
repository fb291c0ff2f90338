"""Requirements × evidence → verdicts.

Pure: no clock, no files. Nothing here runs a test or reads output; it decides what an observation proves, and for
everything that no observation proves it says so. There is no path to a pass other than a reading measured on the
declared cluster.
"""
