"""Values → files that other programs run: scripts, batch jobs, manifests.

Nothing here decides what is tested; nothing is run, read or written. Every value that comes from a file of the user is
quoted for the language that it is put into. The same plan and options give the same bytes.
"""
