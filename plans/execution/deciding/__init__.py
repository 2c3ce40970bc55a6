"""Decisions as they come in, about one step or a pattern of them, and why a step asks.

`plans.execution.approvals` decides about each call.
"""
