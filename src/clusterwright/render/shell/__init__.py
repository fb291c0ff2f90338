"""Acceptance as shell scripts: on one machine, or over ssh from one that reaches the nodes."""
