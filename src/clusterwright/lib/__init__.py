"""Quantities, figures, hostlists: what could be a package of its own.

Nothing here may know what a cluster is, touch the world, or read a clock.
"""
