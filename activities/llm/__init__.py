"""The `ask_llm` activity: client, model, replies, errors, prompts of agents.

May import `plans` and `runtime`.
"""
