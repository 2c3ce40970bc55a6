"""What happened in a run and what happens: numbered events, the logs of every attempt.

May import the other modules of `plans.views`.
"""
