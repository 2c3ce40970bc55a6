"""Activities around a plan's run: checking it, snapshots, recording its end, the agent history.

May import `plans`, `runtime` and the other parts of `activities`.
"""
