"""Execution of a plan: the schedule, approvals, plans revised, resume, rolling back, and when to continue-as-new.

May import everything in `plans` but the views.
"""
