"""What commands write: recorded whole in the value store while they run, with bounded memory, secrets masked.

May import `plans` and `runtime`.
"""
