"""Files: what is read from and written to paths, standard input and package data.

Nothing here knows what a text means: it is handed to `model` or `catalogue` as it is.
"""
