"""Schedules of plans, on Temporal Schedules: the server keeps the time and starts the runs.

`spec.py` says when, from what a person writes; `words.py` says it back; `create.py` makes a schedule of a checked plan;
`control.py` triggers, pauses, backfills, deletes; `views.py` lists and shows.
`upkeep.py` schedules `plan prune`.
"""
