"""Acceptance as batch jobs of Slurm."""
