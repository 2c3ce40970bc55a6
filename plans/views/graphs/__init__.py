"""The graph of a plan that has not started: which steps it has, what is inside what, what waits for what.

May import `plans`.
"""
