"""The output `content` of a plan as content of MCP: blocks as they are, and files that the plan wrote.

A plan says so by this name: `outputs: {content: ...}`, one block or a list of them. A text alone is a block of text.
`{"type": "file", "path": "out/chart.png"}` is a file of the workspace; what it becomes goes by its media type. What is
none of these is told as JSON, never dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from mcp.types import AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceLink, TextContent
from pydantic import BaseModel, ValidationError

from plansurvive.plans.text.safe_text import safe

MAX_BLOCKS = 50
MAX_CHARACTERS = 4_000_000
"""Of all blocks together, as JSON."""
MAX_TEXT = 20_000
"""Characters of a value that is told as text."""
FILE = "file"
_KINDS: dict[str, type[BaseModel]] = {
    "text": TextContent, "image": ImageContent, "audio": AudioContent, "resource": EmbeddedResource,
    "resource_link": ResourceLink,
}  # fmt: skip
_SCHEMES = ("plan:", "https:", "test:", "urn:")
"""Of addresses that a block may name: none that a client would open on its own machine."""

FileBlock = Callable[[str], ContentBlock]


def contents(value: Any, file: FileBlock) -> list[ContentBlock]:
    """The blocks of an output. `file` makes the block of a file."""
    given = value if isinstance(value, list) else [value]
    found: list[ContentBlock] = []
    left = MAX_CHARACTERS
    for each in given[:MAX_BLOCKS]:
        block = _block(each, file)
        left -= len(block.model_dump_json())
        if left < 0:
            found.append(TextContent(text="… further content is too large to be shown"))
            return found
        found.append(block)
    if len(given) > MAX_BLOCKS:
        found.append(TextContent(text=f"… {len(given) - MAX_BLOCKS} further blocks"))
    return found


def as_text(value: Any) -> str:
    """A value as a model reads it, bounded."""
    text = safe(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… {len(text) - MAX_TEXT:,} more characters"


def _block(value: Any, file: FileBlock) -> ContentBlock:
    if isinstance(value, Mapping):
        kind, path = value.get("type"), value.get("path")
        if kind == FILE and isinstance(path, str) and set(value) <= {"type", "path"}:
            return file(path)
        block = _of_mcp(_KINDS[kind], value) if isinstance(kind, str) and kind in _KINDS else None
        if block is not None:
            return block
    return TextContent(text=as_text(value))


def _of_mcp(kind: type[BaseModel], value: Mapping[str, Any]) -> ContentBlock | None:
    """A block that a plan wrote as MCP has it; None if it is not one. Texts are made safe."""
    try:
        found: Any = kind.model_validate(dict(value))
    except ValidationError:
        return None
    if isinstance(found, TextContent):
        return TextContent(text=safe(found.text), annotations=found.annotations)
    address = found.resource.uri if isinstance(found, EmbeddedResource) else getattr(found, "uri", "plan:")
    kept: ContentBlock | None = found if str(address).startswith(_SCHEMES) else None
    return kept
