"""What the runs of each family of tools prove, as readings of metrics: one module per family.

No module here decides whether a reading passes, or looks at an architecture.
"""
