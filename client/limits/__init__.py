"""Limits, priority and fairness as a client sees them: what a plan is started with, and what limits hold now.

May import `client`, `runtime` and `plans`.
"""
