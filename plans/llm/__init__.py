"""LLM requests and answers for plans and recoveries: prompts, JSON Schemas, JSON extraction, parsing.

May import `plans` (root), `plans.definition`, `plans.execution` and `plans.agents`.
"""
