"""Saved templates as MCP tools of their own: `plan mcp --templates release,nightly`, PLANS_WEB_MCP_TEMPLATES.

`offers.py` makes the tool of a template, `calling.py` starts its plan and waits a while, `answers.py` answers with its
outputs, of which `contents.py` and `files.py` make content. May import what `apps.mcp.tools` may.
"""
