"""One attempt of a step: heartbeat, time limit, errors, results, redaction, and what a worker injects into tools.

May import `plans`, `runtime`, and the parts of `activities` that a tool call needs.
"""
