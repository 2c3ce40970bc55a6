"""Releases of the workers' code: which version gets new plans, how many plans are at each, and moving them on.

`commands.py` is `plan worker versions`, `ramp`, `rollback` and `drain`. The versions
themselves are in `runtime/versions/`.
"""
