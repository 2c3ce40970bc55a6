"""Activities around a plan's run: check, workspace snapshot, record of the end, agent history.

May import `plans`, `runtime` and the other parts of `activities`.
"""
