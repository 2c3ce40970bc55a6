"""The commands `plan schedule ...`: `group.py` has their table, `create.py` makes schedules, `show.py` prints them,
`control.py` acts on them.
"""
