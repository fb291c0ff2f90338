"""The embedded engine: real processes on this machine, on real or virtual nodes.

    supervisor ──┬── control plane   one; decides through `queueing`, keeps state through a `Store`, reaps
                 └── agent           one per node; starts ranks and reports them
                       └── shim      one per rank; refuses a stale epoch, records the exit, adopts orphans
                             └── the user's process

Any of these may be killed with -9 at any moment. Modules that agents and shims use import the standard library only.
It does not isolate users from each other and does not stop anyone outside it from using a GPU.
"""
