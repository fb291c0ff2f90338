"""Review: rules over the architecture, its plan and the catalogue; each finding names a place, numbers and an owner.

A rule is a pure function in the module of its area, listed in that module's table; `rulebook` joins the tables. What
may not live here: formulas (physics, plan), reading of files, rendering of findings.
"""
