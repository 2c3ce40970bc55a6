"""The parts of `plans.definition.validation`: names and scopes, calls, expressions, constructs, cycles.

May import what `plans.definition` may.
"""
