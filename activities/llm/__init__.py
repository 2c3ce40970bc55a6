"""The `ask_llm` activity: the HTTP client, the model's settings, parsing of replies, errors.

May import `plans` and `runtime`.
"""
