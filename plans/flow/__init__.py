"""Control flow of a run: the steps inside blocks, the instances of loops, their scopes, values and progress.

May import `plans` (root), `plans.model`, `plans.expressions` and `plans.definition`. Nothing here changes a status.
"""
