"""Takes back what a plan did, after it has ended: its file changes, and what its steps say with `undo`.

`files` restores files through a short workflow; `compensations` runs the undos as a plan of their own, and `latest`
finds those plans again.
"""
