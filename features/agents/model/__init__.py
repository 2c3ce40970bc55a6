"""Agent runs as values: order and limits, task list, answers, history of runs, and what its model is sent.

May import `plans` (root), `plans.definition`, `plans.execution` and `plans.llm`.
"""
