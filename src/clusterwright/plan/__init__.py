"""Planning: what fits where, how fast, what a failure takes, what a unit of accepted work costs.

Declared values, catalogue entries and measured figures in; a `Plan` of figures out. Formulas are in `physics`; here
inputs are chosen, formulas applied and results compared with targets. What this form does not model is an `Unplanned`
with its reason. Here lives no text for people beyond reasons, no rule of the review, nothing that touches the world.
"""
