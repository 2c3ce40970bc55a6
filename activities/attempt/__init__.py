"""One attempt of a step: heartbeat, timeout, errors, results, redaction, and the services a worker injects into tools.

May import `plans`, `runtime`, and the parts of `activities` that a tool call needs.
"""
