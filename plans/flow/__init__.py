"""The steps inside blocks and loops: the instances of loops, their scopes, values and progress.

May import `plans` (root), `plans.model`, `plans.expressions` and `plans.definition`; a Run is made of these. Nothing
here changes a status.
"""
