"""Programs that run as tasks of a job and report what they see there.

Standard library only and light to start: a probe runs in the image of the workload, once per rank. A probe looks and
reports; it never compares with what was expected and gives no verdict.
"""
