"""LimitsWorkflow: keeps rates and concurrency of one task queue for all its workers, wherever they run.

May import `plans` and `workflows`.
"""
