"""Quick calls in the worker: a tool's activity as a local activity, within the time that its workflow task has left.

May import `plans`, and nothing of `activities`.
"""
