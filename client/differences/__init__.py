"""What differs between two plans, step by step and field by field, or between two texts; for every client.

Pure. May import `plans` and `activities.workspace.text_diff`, which is pure as well.
"""
