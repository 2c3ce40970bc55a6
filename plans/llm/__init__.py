"""What an LLM is asked for a plan or a recovery, and how its answers are read: prompts, schemas, JSON extraction.

May import `plans` (root), `plans.definition`, `plans.execution` and `plans.agents`.
"""
