"""Notifications: what people are notified of a plan, when, and in which words; delivery is `activities.notify`.

May import what `plans` may; `rules`, `told` and `news` are used by a plan's run, the rest by `NotifyWorkflow`.
"""
