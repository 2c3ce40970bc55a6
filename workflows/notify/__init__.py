"""Notifications: `telling` hands a plan's news over, `notifier` is the workflow that has them delivered.

May import what `workflows` may.
"""
