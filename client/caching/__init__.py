"""Results of earlier runs as the client sees them: which run `last` is, and why a step's tool was called.

May import `plans` and the client's root.
"""
