"""Estimates for scripts: the formulas of `physics` with the inputs that a question names, scalars or arrays.

Arrays broadcast as numpy's do. What may not live here: a formula of its own, a look-up by name, anything of a file.
"""
