"""Training of one model on one layout: memory per GPU and pipeline stage, work, time of a step, time of a run.

Pure formulas over a `Decoder`, a `Layout` and a `Recipe`; every constant is a field that a caller may replace. What may
not live here: what a file declares or how a figure is explained (`plan`), prices, failures of hardware
(`physics.failures`), names of models or frameworks' command lines.
"""
