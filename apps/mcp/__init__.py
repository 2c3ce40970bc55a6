"""Our MCP server: plans as tools, resources and a prompt, for coding agents and other MCP clients.

`host.Host` says whose server it is and how it reaches Temporal; `server.build` makes the server.
`commands` serves it on standard input and output, `pages` at `/mcp` of the web page.
"""
