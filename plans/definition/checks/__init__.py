"""What is wrong with a plan, and what it will ask: names and scopes, calls, expressions, constructs, cycles, races.

`validation` runs all of them. May import what `plans.definition` may, and that.
"""
