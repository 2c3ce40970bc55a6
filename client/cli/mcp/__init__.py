"""`plan mcp`: our MCP server on standard input and output, for agents that start it as a program.

May import what the command line may, and `client.mcp`.
"""
