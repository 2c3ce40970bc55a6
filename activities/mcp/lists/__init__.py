"""Which entries of a server's list of tools are as the protocol has them? One that is not must not cost the others.

May import `plans` and the library `mcp`, which only workers with a tool server load.
"""
