"""Our MCP server: plans as tools, resources and a prompt, for coding agents and other MCP clients.

`host.Host` says whose server it is and how it reaches Temporal; `server.build` makes the server. May import
`client.runs`, `client.requests` and what they are made of, but not the command line. The library `mcp` is imported
here, and nowhere else in `client`.
"""
