"""Who wrote which file: workspace snapshots and their diffs, declared writes, shell writes, the journal, undo.

May import `plans`, `runtime` and `activities.workspace`.
"""
