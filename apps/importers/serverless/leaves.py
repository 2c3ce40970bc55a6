"""A task as one step, and the question that stands for a task without a counterpart."""

from __future__ import annotations

from typing import Any, NamedTuple

from plansurvive.apps.importers.common.expressions import Node
from plansurvive.apps.importers.common.report import Location
from plansurvive.apps.importers.serverless.state import State

MAX_ROWS = 100
"""Most lines of a question about a task."""
ASK = "write it as a step with your own tool"


class Leaf(NamedTuple):
    """One step, and what its output is to the tasks that follow."""

    step: dict[str, Any]
    output: Node
    context: Node | None = None
    """What `$context` is after it; None: what it was before."""


def asks(name: str, text: str, given: Any, state: State, place: Location) -> dict[str, Any]:
    """A step that asks a person to do what no tool does."""
    rows = [text]
    waiting: list[tuple[tuple[str, ...], Any]] = [(("",), given)] if isinstance(given, dict) else []
    while waiting and len(rows) < MAX_ROWS:
        names, value = waiting.pop(0)
        if isinstance(value, dict):
            waiting = [((*names, str(name)), each) for name, each in value.items()] + waiting
        else:
            rows.append(f"{'.'.join(names[1:])}: {state.text(value, (*place, *names[1:]))}")
    return {"id": name, "tool": "ask", "args": {"question": "\n".join(rows)[:20_000], "choices": ["done"]}}
