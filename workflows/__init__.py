"""Deterministic workflows: when things happen, over the decisions of `plans`.

Imports `plans` and the Temporal SDK only; activities are scheduled by name.
"""
