"""The tools `plan_*`, a file per family; they call the functions of `client.runs` and `client.requests` as commands do.

A file has one class, whose methods are its tools, and `register(server, host)`. May import `apps.mcp`, except
`server`, and what that may import.
"""
