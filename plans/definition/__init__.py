"""A plan as written: parsing, arguments, dependencies, questions, output schemas.

May import `plans` (root), `plans.model`, `plans.expressions` and `plans.files`.
"""
