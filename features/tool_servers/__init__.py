"""Tools of other MCP servers, which the operator names in mcp.toml: docs/tool-servers.md.

The library `mcp` is an extra, and loaded only when a server is used.
"""

REACHES_OUT = True
READS = {"mcp.toml": ("PLANS_MCP", "servers:read_servers")}
COMMANDS = {
    "mcp servers": (
        "commands:servers",
        "List the servers of tools in mcp.toml: how they are reached, and their tools.",
    ),
    "mcp login": (
        "commands:login",
        "Log in to a server of mcp.toml in the browser, so that workers may act for you there.",
    ),
}
