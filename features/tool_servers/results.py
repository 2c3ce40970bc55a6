"""The value of a call: what a tool server answered, as a JSON value for references and agents.

- structured content, if there is any;
- else the text, if there is only text (several texts are joined by line breaks);
- else a list with an object for each part: `text`; or `mediaType` and `data` (base64) of a picture, a sound or a file,
  with its `uri`; or `uri`, `name` of what the server only links to.

A long value is stored outside history, as that of any tool. A server's text is data: nothing in it is followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plansurvive.activities.values.errors import bounded, one_line
from plansurvive.activities.values.results import json_text
from plansurvive.plans.errors import ToolError

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

MAX_PARTS = 1_000
MAX_ERROR = 2_000
"""Characters of a server's error that a plan shows."""


def value_of(server: str, tool: str, result: CallToolResult, most: int) -> Any:
    """The value. Raises ToolError: MCP_ERROR (the tool failed), MCP_LIMIT or BAD_VALUE (it is too much)."""
    if result.is_error:
        raise failed(server, tool, _texts(result.content) or "it gave no reason")
    if len(result.content) > MAX_PARTS:
        raise too_large(server, tool, f"it has {len(result.content):,} parts, the maximum is {MAX_PARTS:,}")
    structured = result.structured_content
    value = structured if structured is not None else _of_content(result.content)
    size = len(json_text(value).encode())
    if size > most:
        raise too_large(server, tool, f"it has {size:,} bytes, the maximum is {most:,} (maxResult in mcp.toml)")
    return value


def failed(server: str, tool: str, said: str) -> ToolError:
    """The error of a tool that reports one. What it says is quoted: it is the server's, not ours."""
    return ToolError("MCP_ERROR", f"{server}.{tool} failed; the server says: {bounded(said, MAX_ERROR)}")


def too_large(server: str, tool: str, why: str) -> ToolError:
    """The error of a result that is too large."""
    return ToolError("MCP_LIMIT", f"the result of {server}.{tool} is too large: {why}; ask it for less")


def _of_content(content: list[ContentBlock]) -> Any:
    if all(block.type == "text" for block in content):
        return _texts(content)
    return [_part(block) for block in content]


def _texts(content: list[ContentBlock]) -> str:
    return "\n".join(block.text for block in content if block.type == "text")


def _part(block: ContentBlock) -> dict[str, Any]:
    if block.type == "text":
        return {"text": block.text}
    if block.type == "image" or block.type == "audio":
        return {"mediaType": _named(block.mime_type), "data": block.data}
    if block.type == "resource_link":
        return _given(uri=block.uri, name=block.name, mediaType=block.mime_type)
    found = block.resource
    described = _given(uri=found.uri, mediaType=found.mime_type)
    return described | ({"text": found.text} if hasattr(found, "text") else {"data": found.blob})


def _given(**fields: Any) -> dict[str, Any]:
    return {name: _named(str(value)) for name, value in fields.items() if value is not None}


def _named(text: str) -> str:
    return one_line(text)[:2_000]
