"""Servers of tools (Model Context Protocol) as the operator names them in `mcp.toml`: what runs, where, and with what.

Data and checks only; nothing here connects or starts anything. May import `plans` and `runtime`.
"""
