"""The audit record of a plan: who did what, when, to which version and call; a chain of hashes, and what is wrong with
one. Pure: `runtime.audit` reads histories and files. Imports nothing outside `plans`.
"""
