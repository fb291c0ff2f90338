"""Bytes → observations: one module per tool, pure.

A reader never guesses: what it does not know it refuses by name, what it cannot read it keeps as a sample and counts,
and what is missing from a whole output makes the run incomplete.
"""
