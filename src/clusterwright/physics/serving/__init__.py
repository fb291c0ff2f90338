"""Serving: how long a prompt and a decode step take, and what concurrency or arrivals make of them.

A model is turned into seconds at peak rates once (`traffic`, `sides`); constants say which share of the peaks an engine
reaches and what it adds (`constants`). Everything works on arrays of settings; one setting is an array of length one,
its terms named and summing to the figure (`answers`). No catalogue, no file, no search over layouts lives here.
"""
