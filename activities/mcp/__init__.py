"""Tools of other servers (Model Context Protocol): connections to the servers of mcp.toml, calls, and their results.

May import `plans`, `runtime` and the parts of `activities` that a tool call needs. The library `mcp` is an extra, and
loaded only when a server is used.
"""
