"""An agent's run: its order, task list, prompts, answers and history.

May import `plans` (root), `plans.definition`, `plans.execution` and `plans.llm`.
"""
