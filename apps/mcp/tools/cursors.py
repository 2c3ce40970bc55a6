"""How far the output of a plan's commands has been read, as a text that an agent passes back."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, ValidationError
from temporalio.client import Client

from plansurvive.activities.outputs.stored_output import Position, output
from plansurvive.features.outputs.attempts import Attempts, Shown
from plansurvive.plans.activity_io import STDERR, STDOUT
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.model import Value
from plansurvive.plans.text.safe_text import safe
from plansurvive.runtime.value_store import ValueStore

MAX_PARTS = 500
"""Attempts that may be read in parts at the same time."""


class Read(Value):
    """A piece of output."""

    step: str
    attempt: int = Field(description="Its number among the attempts of the plan, or of the step, from 1.")
    stream: Literal["stdout", "stderr"]
    text: str
    problem: str = Field(default="", description="Why the rest of the attempt's output cannot be read.")


class _Part(Value):
    out: int = Field(default=0, ge=0)
    err: int = Field(default=0, ge=0)


class _At(Value):
    whole: int = Field(default=0, ge=0, le=10_000_000, description="Attempts that were read to their end.")
    parts: dict[int, _Part] = Field(default_factory=dict, max_length=MAX_PARTS)


class LogCursor:
    """A position in the output of all attempts, in the order in which they began."""

    def __init__(self, at: _At) -> None:
        self._at = at

    @classmethod
    def parsed(cls, text: str) -> Self:
        """The position of an answer before. Raises PlanError BAD_CURSOR."""
        try:
            return cls(_At.model_validate_json(text) if text else _At())
        except ValidationError:
            raise PlanError(
                "`cursor` is not one of plan_logs; leave it out to begin at the start", "BAD_CURSOR"
            ) from None

    @property
    def text(self) -> str:
        """As an agent passes it back."""
        return self._at.model_dump_json(exclude_defaults=True)

    def position(self, number: int) -> Position | None:
        """Where an attempt is to be read on; None if it was read to its end."""
        if number < self._at.whole:
            return None
        part = self._at.parts.get(number, _Part())
        return {STDOUT: part.out, STDERR: part.err}

    def move(self, number: int, position: Position, *, ended: bool) -> None:
        """Note how far an attempt was read; `ended`: to its end, and those before it as well."""
        parts = {**self._at.parts, number: _Part(out=position[STDOUT], err=position[STDERR])}
        whole = self._at.whole
        if ended and number == whole:
            whole += 1
        self._at = _At(whole=whole, parts={name: part for name, part in parts.items() if name >= whole})


async def read_on(
    client: Client, store: ValueStore, plan: str, step: str, cursor: LogCursor, limit: int
) -> tuple[list[Read], bool]:
    """Output after the cursor, which is moved along, at most about `limit` bytes; and whether this was all for ever.

    Raises as `Attempts.known`.
    """
    known = await Attempts(client, plan, step).known()
    found: list[Read] = []
    for number, shown in enumerate(known.attempts[: MAX_PARTS * 100]):
        position = cursor.position(number)
        if position is None:
            continue
        is_all = await _read(shown, number, store, position, limit, found)
        cursor.move(number, position, ended=is_all and not shown.runs)
        limit -= sum(len(each.text.encode()) for each in found if each.attempt == number + 1)
        if limit <= 0:
            return found, False
    return found, known.has_ended


async def _read(
    shown: Shown, number: int, store: ValueStore, position: Position, limit: int, found: list[Read]
) -> bool:
    """Read an attempt on from a position, which is moved along; False if there is more."""
    try:
        async for piece in output(shown.attempt, store, position):
            data, surplus = piece.data[:limit], piece.data[limit:]
            text = data.decode(errors="ignore" if surplus else "replace")
            if surplus:  # of a character that was cut in two, the beginning is read again
                position[piece.stream] -= len(piece.data) - max(1, len(text.encode()))
            name: Literal["stdout", "stderr"] = "stdout" if piece.stream == STDOUT else "stderr"
            found.append(Read(step=shown.label, attempt=number + 1, stream=name, text=safe(text)))
            limit -= len(data)
            if limit <= 0:
                return False
    except (ToolError, OSError, ValueError) as error:
        problem = str(error)[:1_000]
        found.append(Read(step=shown.label, attempt=number + 1, stream="stdout", text="", problem=problem))
    return True
