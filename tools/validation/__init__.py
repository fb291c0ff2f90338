"""Scores of the planner against public measurements; one module per set, `make validate` prints them as one table."""
