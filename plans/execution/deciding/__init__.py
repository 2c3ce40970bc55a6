"""Decisions beyond a single call: all calls like this one, and why a step asks.

`plans.execution.approvals` decides about a single call.
"""
