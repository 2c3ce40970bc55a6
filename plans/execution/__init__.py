"""Execution of a plan: the schedule, approvals, edits, resume, recovery, and when to continue-as-new.

May import `plans` (root), `plans.definition` and `plans.llm`.
"""
