"""Progress of a run as it happens: numbered events, derived from the Run.

May import the other modules of `plans.views`.
"""
