"""An inference engine's memory budget as figures, one module per engine.

The numbers are those of `physics.engines`; here they get origins and derivations, so that every term explains itself
and every constant can be ranked by its effect. Nothing of an architecture's placement or load lives here.
"""
