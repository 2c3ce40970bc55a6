"""Decisions that are about more than one call: all like this one, and all items of a loop that await one now.

`plans.execution.approvals` decides about a single call.
"""
