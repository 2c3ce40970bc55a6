"""What the parts of the MCP server share: its host, replies, errors, and the rules of decisions."""
