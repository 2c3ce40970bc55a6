"""What the tools of other MCP servers become: names, schemas, specs, approvals, and what follows when one changes.

Everything a server says is hostile input. Pure; may import `plans`.
"""
