"""The world: files, processes, the network, LLM endpoints. Everything here runs as an activity of a worker.

May import `plans` and `runtime`.
"""
