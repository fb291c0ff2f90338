"""Constants of serving refitted from measurements, and how far predictions are off before and after.

Measurements come in as text or as observations of readers; constants go out as catalogue data. No file is opened here,
nothing is measured here, and no formula of serving lives here: they are in `physics.serving`.
"""
