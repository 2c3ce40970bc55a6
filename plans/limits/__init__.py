"""Rates and concurrency: what a call claims, and whether it may begin now. One `Limiter` holds the state of all limits
of a task queue; `workflows.limits` keeps it, workers ask it. Pure: the time is an argument.
"""
