"""What happened in a run and what it awaits: numbered events, the logs of every attempt, pending decisions.

Imports the models and the steps of `plans.views`; the views of a whole plan import it.
"""
