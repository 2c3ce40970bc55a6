"""A tool server that says what a file tells it to: its tools and their results, read anew for each request.

Speaks the protocol of 2025-06-18 on standard input and output. Standard library only, so it starts fast. The file has
`tools`, as `tools/list` gives them, and `results`: a text by tool. While it is empty, there is no answer.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

SAID = Path(sys.argv[1])
INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "c", "version": "1"}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None: there is no such method."""
    while not (text := SAID.read_text()):
        time.sleep(0.05)
    said = json.loads(text)
    if method == "initialize":
        return INFO
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": said["tools"]}
    if method == "tools/call":
        found = said.get("results", {}).get(params["name"], json.dumps(params.get("arguments")))
        return {"content": [{"type": "text", "text": found}]}
    return None


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        error = {"error": {"code": -32601, "message": "no such method"}}
        said = error if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
