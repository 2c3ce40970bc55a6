"""Releases of the workers' code: which version gets new plans, how many plans are at each, and moving them on.

May import `client`, `runtime` and `plans`. The versions themselves are in `runtime/versions/`.
"""
