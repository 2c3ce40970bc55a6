"""What a tool answers: a typed view as structured content, and a short text that a model reads.

Texts of plans are made safe and bounded here: they come from LLMs, other agents and the output of commands.

Remembered in a file, as a key may not be used again for another request and clients show one only once. Not in the
plan's history, which would grow with each wrong reply; not in memory, or a restart would ask by an answered key.
"""

from __future__ import annotations

from mcp.types import CallToolResult, TextContent

from plansurvive.plans.model import Value
from plansurvive.plans.text.safe_text import safe

MAX_TEXT = 32_000
"""Characters of the text; the structured content has the rest, or a cursor to it."""


def reply(view: Value, text: str) -> CallToolResult:
    """The result of a call."""
    data = view.model_dump(mode="json", by_alias=True, exclude_none=True)
    return CallToolResult(content=[TextContent(text=bounded(text))], structured_content=data)


def bounded(text: str) -> str:
    """A text that is safe to show, and not longer than `MAX_TEXT`."""
    shown = safe(text)
    return (
        shown
        if len(shown) <= MAX_TEXT
        else f"{shown[: MAX_TEXT - 60]}\n… {len(shown) - MAX_TEXT + 60:,} more characters"
    )
