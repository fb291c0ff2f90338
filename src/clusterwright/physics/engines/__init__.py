"""Memory budgets of inference engines, one module per engine.

Pure arithmetic on a Decoder, a Layout, a Gpu and the engine's settings. Nothing here reads the catalogue, asks a
machine, or knows a family's name; constants are fields of a dataclass with their source, so that a caller can change
them.
"""
