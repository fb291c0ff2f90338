"""Formulas and ceilings: plain numbers in, plain numbers out.

Every constant stands beside its source, every argument's unit in its name or docstring. Here live no figures with
origins (that is `plan`), no look-ups in the catalogue, no decisions, and nothing that touches the world.
"""
