"""A plan as written: parsing, validation, arguments, dependencies, output schemas.

May import `plans` (root) only.
"""
