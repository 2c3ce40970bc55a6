"""Our MCP server over HTTP: at /mcp of the web page, for the people who may use the page.

`entrance` says who sends a request, `endpoint` serves it, `roles` says which tools a role may see and call. May import
`client.access` and `apps.mcp.server`; the page's application mounts it, and no page imports it but its own.
"""
