"""Delivery of notifications: who the targets are, whether a decision still waits, mail and chat, webhooks.

May import `plans`, `runtime` and the other parts of `activities`; Apprise (extra `notify`) only when a message is sent.
"""
