"""Files as values: what a plan changed and how to undo it, whether files changed since a run saw them.

May import `plans` (root), `plans.model` and `plans.expressions`.
"""
