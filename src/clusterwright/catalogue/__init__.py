"""Published facts as data files: GPUs, node shapes, NICs, models, prices, software support.

Every entry has a source and a date. Here live the data and what turns it into values of `model`; no formula, no rule,
no reading of files (that is `files`), no clock: whoever asks for an age passes today in.
"""
