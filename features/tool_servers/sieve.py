"""Mends `tools/list` before the library checks it, as that refuses the whole list for one tool with a fault.

Servers in use forget `type` in the schema of a tool without arguments: it is added, as nothing else is allowed there. A
tool with any other fault stays in the list, with a schema that marks it, so that it is left out with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, Tool
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from plansurvive.features.tool_servers.listed_tools import FAULTY

METHOD = "tools/list"


class Sieve:
    """What arrives from one server. Only lists of tools are looked at."""

    def __init__(self) -> None:
        self.version = ""
        """Of the protocol, once it is agreed upon; empty: nothing is mended."""

    def passed(self, message: SessionMessage | Exception) -> SessionMessage | Exception:
        """The message, its list of tools mended if it has one."""
        response = getattr(message, "message", None)
        if self.version and isinstance(response, JSONRPCResponse):
            tools = response.result.get("tools")
            if isinstance(tools, list) and not self._conforms(response.result):
                mended = (self._mended(tool) for tool in tools)
                response.result["tools"] = [tool for tool in mended if tool is not None]
        return message

    def _mended(self, tool: Any) -> dict[str, Any] | None:
        """The tool as the library takes it; None if it has no name by which it could be told."""
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            return None
        schema: Any = tool.get("inputSchema")
        untyped = isinstance(schema, dict) and "type" not in schema
        typed = {**tool, "inputSchema": {**schema, "type": "object"}} if untyped else tool
        if self._conforms({"tools": [typed]}):
            return typed
        return {"name": tool["name"], "inputSchema": dict(FAULTY)}

    def _conforms(self, result: Mapping[str, Any]) -> bool:
        """Whether the library takes each tool of a result. The rest of the result is not looked at."""
        tools = result["tools"]
        rest = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        try:
            validate_server_result(METHOD, self.version, {"tools": tools, **rest})
            for tool in tools:
                Tool.model_validate(tool, by_name=False)
        except ValidationError:
            return False
        except (KeyError, ValueError):  # a version without this method
            return True
        return True
