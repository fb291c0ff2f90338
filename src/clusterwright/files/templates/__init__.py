"""Templates of `cw init`: package data, each the same text as its file under `examples/`."""
