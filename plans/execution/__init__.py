"""Execution of a plan: the schedule, approvals, edits, resume, recovery, rolling back, and when to continue-as-new.

May import everything in `plans` but the views.
"""
