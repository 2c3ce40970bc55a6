"""Garbage collection of the state directory: what no plan needs goes, by hand or at set times (docs/scaling.md)."""

REACHES_OUT = True
ACTIVITIES = ("prune",)
COMMANDS = {"prune": ("commands:prune", "Remove stored values that no plan refers to.")}
LISTED = {"prune": ("After the end", "evaluate")}
