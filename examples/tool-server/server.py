"""A tool server with two tools, to be named in mcp.toml: JSON-RPC on standard input and output, one message a line.

Yours will rather use a library, as `mcp` of Python; this shows how little it takes. Standard library only.
"""

from __future__ import annotations

import json
import sys
from typing import Any

STOCK = {"tea": 12, "coffee": 0}
ITEM = {"type": "string", "enum": sorted(STOCK), "description": "What it is."}
COUNT = {"type": "integer", "minimum": 1, "description": "How many."}


def tool(name: str, description: str, *, reads: bool, **arguments: Any) -> dict[str, Any]:
    """A tool as `tools/list` gives it."""
    taken = {"type": "object", "properties": arguments, "required": list(arguments), "additionalProperties": False}
    answer = {"type": "object", "properties": {"item": ITEM, "left": {"type": "integer"}}, "required": ["item", "left"]}
    return {
        "name": name,
        "description": description,
        "inputSchema": taken,
        "outputSchema": answer,
        "annotations": {"readOnlyHint": reads, "destructiveHint": not reads},
    }


TOOLS = [
    tool("look_up", "How many of an item are left.", reads=True, item=ITEM),
    tool("reserve", "Put some of an item aside.", reads=False, item=ITEM, count=COUNT),
]


def called(name: str, args: dict[str, Any]) -> dict[str, Any]:
    """The result of a call."""
    item = args["item"]
    if name == "reserve":
        if args["count"] > STOCK[item]:
            text = f"there are only {STOCK[item]} of {item}"
            return {"content": [{"type": "text", "text": text}], "isError": True}
        STOCK[item] -= args["count"]
    value = {"item": item, "left": STOCK[item]}
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None: there is no such method."""
    if method == "initialize":
        ours = {"name": "shop", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": ours}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return called(params["name"], params["arguments"])
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:  # else it is a notification, which has no answer
        found = answer(message["method"], message.get("params") or {})
        wrong = {"error": {"code": -32601, "message": "no such method"}}
        print(
            json.dumps({"jsonrpc": "2.0", "id": message["id"], **({"result": found} if found is not None else wrong)})
        )
        sys.stdout.flush()
