"""A plan as written: parsing, validation, arguments, references, conditions, output schemas.

May import `plans` (root) only.
"""
