"""What follows from what: the schedule, approvals, edits, resume, recovery, and when to continue-as-new.

May import `plans` (root) and `plans.definition`.
"""
