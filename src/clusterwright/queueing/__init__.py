"""Which job starts next, where, and why the others wait: state in, decisions out.

The embedded engine calls this and decides nothing itself. No clock, no process and no engine may live here: the time
and everything that is known about nodes come in as arguments.
"""
