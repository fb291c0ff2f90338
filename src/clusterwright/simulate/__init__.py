"""Time, failures and repairs around the queue: what a cluster does over months, computed in seconds.

Here live the processes of the world (failures, repairs, maintenance, capacity that arrives, loading from storage), the
arithmetic of a job's attempts, and the loop that puts them around `queueing`. Nothing here decides who runs, where, or
who is preempted: that is `queueing`. No clock, no I/O and no randomness of its own: a seed or a generator comes in, and
the same seed gives the same events.
"""
