"""The pages on plans: the list, one plan, its steps, logs and files. Each module has `routes`.

A handler asks `client.runs` and renders a template; it decides nothing itself.
"""
