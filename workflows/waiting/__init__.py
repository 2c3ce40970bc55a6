"""Steps that wait for an answer or an event: the messages that bring them, and what they lead to.

`plans.waiting` decides which answers and events count; this package receives them, starts timers and settles steps.
"""
