"""Where every installed GPU-second went, computed from what happened; engine accounting is an input, never the truth.

No decision about jobs or nodes, no clock, no file and no engine's own format may live here: histories come in as
values, sums go out as whole numbers of GPU-milliseconds that add up to installed GPUs × time.
"""
