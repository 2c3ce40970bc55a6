"""Garbage collection of the state directory: stored values, records of plans, logs. Reads the server, so that nothing
goes that a plan there still needs. Imports `plans` and `runtime`.
"""
