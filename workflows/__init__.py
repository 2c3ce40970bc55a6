"""Temporal workflows: deterministic code that starts activities, child workflows and timers as `plans` decides.

Imports `plans` and the Temporal SDK only; activities are scheduled by name.
"""
