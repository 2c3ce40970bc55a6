"""Saved templates as MCP tools of their own: `plan mcp --templates release,nightly`, PLANS_WEB_MCP_TEMPLATES.

`offers.py` makes the tool of a template, `calling.py` starts its plan and waits a while, `contents.py` and `files.py`
make content of the plan's outputs. May import `client.mcp`, except `server`, and what that may import.
"""
