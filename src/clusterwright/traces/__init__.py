"""Job traces: what was submitted when, how long it waited and ran, and with how many GPUs, as one table.

Whatever a trace comes from (Slurm's accounting, the engine's own events, public traces, a CSV file), it becomes the
same arrays, with an account of every row of the source: it is a job, a part of a job, or rejected for a named reason.
Distributions are fitted to the table and sampled from.

Here may not live: reading files (lines come in, rows go out), the parsing of Slurm's outputs (that is `readers`; its
rows come in as plain values), and deciding which job starts when (that is `queueing`).
"""
