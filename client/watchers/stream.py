"""Server-sent events as text, and the response that sends them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

EVERY = 0.25
"""Seconds between two messages to one viewer."""
KEEP = 15.0
"""Seconds of silence after which a comment keeps proxies from closing the connection."""
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def message(data: str, *, event: str = "", number: str = "") -> str:
    """One message. Without `event` its data is HTML, which htmx puts where its `<hx-partial>` say.

    `number`: what the browser sends as Last-Event-ID when it comes back.
    """
    head = (f"id: {number}\n" if number else "") + (f"event: {event}\n" if event else "")
    return head + "".join(f"data: {line}\n" for line in data.splitlines() or [""]) + "\n"


def json_message(data: Any, event: str, number: str = "") -> str:
    """One message for scripts: a DOM event of that name on the element that is connected, `detail.data` is JSON."""
    return message(json.dumps(data, separators=(",", ":"), default=str), event=event, number=number)


def streamed(messages: AsyncIterator[str]) -> StreamingResponse:
    """The response that sends messages as they come."""
    return StreamingResponse(messages, media_type="text/event-stream", headers=HEADERS)
