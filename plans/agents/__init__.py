"""Agent runs as values: order and limits, task list, prompts, answers, history of runs.

May import `plans` (root), `plans.definition`, `plans.execution` and `plans.llm`.
"""
