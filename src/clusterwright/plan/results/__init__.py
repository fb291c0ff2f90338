"""What a plan says: frozen values whose numbers are figures, a module for each part of it.

Whatever cannot be planned is an `Unplanned` in the place of the result, with the reason and what is missing; it is
never an exception and never approximated in silence. Whatever is planned and does not hold is a `Misfit`. Here nothing
is computed beyond what a value says of itself.
"""
