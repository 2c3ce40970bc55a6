"""Notices what a worker's activities do, for its traces, metrics and logs; part of the worker only if they are on.

May import `plans`, `runtime` and `activities`.
"""
