"""Writes the legal moves of a step and of a plan into ARCHITECTURE.md, as Mermaid: `python scripts/state_diagram.py`.

The moves come from `plans.run.transitions`, which the schedule enforces; a test compares the document with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from plansurvive.plans.run import DONE, ENDED, PlanStatus, Status
from plansurvive.plans.run.transitions import PLAN_MOVES, STEP_MOVES
from scripts.generated import between

DOCUMENT = Path(__file__).parent.parent / "ARCHITECTURE.md"
BEGIN, END = "<!-- states: begin (scripts/state_diagram.py writes this) -->", "<!-- states: end -->"
State = TypeVar("State", bound=StrEnum)


def states() -> str:
    """The text between the markers: one diagram for steps, one for plans."""
    steps = diagram(STEP_MOVES, Status.PENDING, [status for status in Status if status in DONE])
    plans = diagram(PLAN_MOVES, PlanStatus.DRAFT, [status for status in PlanStatus if status in ENDED])
    return f"A step:\n\n{steps}\n\nA plan, or an agent's run:\n\n{plans}"


def diagram(moves: Mapping[State, Mapping[State, str]], first: State, last: list[State]) -> str:
    """The moves as a Mermaid state diagram."""
    return "\n".join(["```mermaid", "stateDiagram-v2", *_lines(moves, first, last), "```"])


def _lines(moves: Mapping[State, Mapping[State, str]], first: State, last: list[State]) -> Iterator[str]:
    yield f"    [*] --> {first.value}"
    for status, others in moves.items():
        yield from (f"    {status.value} --> {other.value}: {cause}" for other, cause in others.items())
    yield from (f"    {status.value} --> [*]" for status in last)


def written(document: str) -> str:
    """The document with the diagrams between its markers. Raises ValueError if it has no markers."""
    return between(document, BEGIN, END, states())


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
