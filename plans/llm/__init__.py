"""LLM requests and answers for plans and recoveries: prompts, JSON Schemas, JSON extraction, parsing.

May import `plans` (root), `plans.definition` and `plans.execution`.
"""
