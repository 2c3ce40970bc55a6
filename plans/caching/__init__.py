"""Results of earlier runs: which steps may take one, by which key it is found, what is kept of one, and why a tool ran.

May import `plans`.
"""
