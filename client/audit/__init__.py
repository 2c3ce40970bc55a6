"""The audit record of a plan for people and programs: from the server's history, or from the state directory when that
is gone. Imports `plans`, `runtime` and what is beside it in `client`.
"""
