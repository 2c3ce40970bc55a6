"""The difference between two texts, such as versions of a template, as the rows of a unified diff."""

from __future__ import annotations

from dataclasses import dataclass

from plansurvive.activities.workspace.text_diff import unified_diff


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    label: str
    text: str


def text_rows(first: Side, second: Side) -> list[str]:
    """The rows of a unified diff; none if the texts are the same."""
    rows = unified_diff("text", first.text, second.text).split("\n")[2:-1]
    return [f"--- {first.label}", f"+++ {second.label}", *rows] if rows else []
