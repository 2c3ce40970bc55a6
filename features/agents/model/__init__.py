"""Agent runs as values: order and limits, task list, answers, history of runs; `prompting` has the prompts.

May import `plans` (root), `plans.definition`, `plans.execution` and `plans.llm`.
"""
