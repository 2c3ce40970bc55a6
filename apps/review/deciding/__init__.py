"""Decisions on the review screen: the call with what it would change, who asks and why; yes, no, always, other
arguments, an answer.

Imports plans, `client.decide`, `client.runs` and the dialogs of the screen.
"""
