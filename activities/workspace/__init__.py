"""Files inside a workspace: paths that cannot leave it, atomic writes, locks, the effect log and its crash recovery.

May import `plans` and `runtime`.
"""
