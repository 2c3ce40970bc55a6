"""What an import could not carry over: where in the document, what, and what to do by hand.

A *loss* changes what the plan does compared with the document; a *note* does not, such as a trigger, which no plan has.

Rejected: running jq in every condition, translating actions (there are tens of thousands), failing on any loss
(`--strict` has it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from plansurvive.plans.model import Value

MAX_LOSSES = 1_000
"""Most entries of a report; what is beyond is counted."""

Location = tuple[str | int, ...]
"""Keys and indexes from the root of the document."""


class Entry(Value):
    """One thing that was not carried over."""

    kind: Literal["loss", "note"]
    where: str = Field(description="Path in the document, such as `jobs.build.steps[2].uses`.")
    line: int | None = Field(default=None, description="Its line.")
    what: str = Field(description="What was not imported.")
    do: str = Field(default="", description="What to do by hand.")


@dataclass
class Report:
    """Collects the entries of one import. Equal ones count once."""

    lines: dict[Location, int] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    left_out: int = 0

    def loss(self, place: Location, what: str, do: str = "") -> None:
        """Something that the plan does differently."""
        self._add("loss", place, what, do)

    def note(self, place: Location, what: str, do: str = "") -> None:
        """Something to know, without which the plan does the same."""
        self._add("note", place, what, do)

    @property
    def losses(self) -> int:
        """The number of losses, those left out included."""
        return sum(entry.kind == "loss" for entry in self.entries) + self.left_out

    def _add(self, kind: Literal["loss", "note"], place: Location, what: str, do: str) -> None:
        entry = Entry(kind=kind, where=path_of(place), line=self._line(place), what=what[:1_000], do=do[:1_000])
        if entry in self.entries[-50:]:
            return
        if len(self.entries) < MAX_LOSSES:
            self.entries.append(entry)
        else:
            self.left_out += kind == "loss"

    def _line(self, place: Location) -> int | None:
        """The line of the place, or of the nearest one above it that has one."""
        for end in range(len(place), 0, -1):
            if place[:end] in self.lines:
                return self.lines[place[:end]]
        return None


@dataclass(frozen=True)
class Imported:
    """A plan made of a foreign document, as the data of a plan file."""

    kind: Literal["github", "serverless"]
    plan: dict[str, Any]
    report: Report


def path_of(place: Location) -> str:
    """A place for people: `jobs.build.steps[2]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".")[:500]
