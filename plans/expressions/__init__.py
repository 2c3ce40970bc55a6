"""Expressions and references: JMESPath with a budget, `$step` and `{{step}}` in arguments, quoting in code.

May import `plans` (root) only.
"""
