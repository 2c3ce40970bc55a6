"""One attempt of a step: heartbeat, timeout, and the services a worker injects into tools.

May import `plans`, `runtime`, and the parts of `activities` that a tool call needs.
"""
