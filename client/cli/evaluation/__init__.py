"""The command `plan replay`: runs replayed as an evaluation, and what differs as text.

May import `client.evaluation` and the rest of `client.cli`.
"""
