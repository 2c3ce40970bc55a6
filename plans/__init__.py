"""Pure values and decisions: what a plan is, whether it is sound, which step follows from what, how it is shown.

Nothing in this package reads a clock, draws a random number, touches a file, the network or the environment, or knows
of Temporal: it is shared with deterministic workflow code, where any of that would break replay.
"""
