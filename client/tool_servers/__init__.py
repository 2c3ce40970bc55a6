"""The servers of tools in mcp.toml as commands see them: their last listings, and listing them again.

May import what `client` may. The library `mcp` is loaded only when a server is asked.
"""
