"""The results of an agent's tool calls as its model is shown them; of long ones no more is loaded than is shown."""

from __future__ import annotations

import codecs

from plansurvive.activities.outputs.stored_output import Number, output
from plansurvive.features.agents.model.question import Outcome
from plansurvive.plans.activity_io import STDERR, STDOUT, Logs
from plansurvive.plans.errors import ToolError
from plansurvive.plans.llm.prompt_parts import RESULT_CHARACTERS, ToolOutcome
from plansurvive.plans.views.progress.logs import LoggedAttempt
from plansurvive.runtime.value_store import ValueStore


async def shown(outcome: Outcome, values: ValueStore) -> ToolOutcome:
    """The result as shown in a prompt. Raises ToolError VALUE_MISSING or VALUE_CORRUPT."""
    if outcome.logs is not None:
        return await _output(outcome, outcome.logs, values)
    if outcome.large is None or not outcome.large.streams:
        return outcome.shown(await values.get(outcome.large) if outcome.large else None)
    return _part(outcome, *await values.excerpt(outcome.large, outcome.offset, RESULT_CHARACTERS))


async def _output(outcome: Outcome, logs: Logs, values: ValueStore) -> ToolOutcome:
    """What the commands of a call without a value wrote. That it cannot be read any more is no reason to fail."""
    try:
        return _part(outcome, *await _excerpt(logs, values, outcome.offset))
    except ToolError as error:
        text = f"{outcome.text}\n(its output cannot be read: {error.message})"
        return outcome.model_copy(update={"text": text, "offset": 0}).shown()


def _part(outcome: Outcome, text: str, length: int) -> ToolOutcome:
    """A part of a result, from the outcome's offset on, of which `length` characters there are."""
    part = outcome.model_copy(update={"large": None, "text": text, "length": None, "offset": 0}).shown()
    left = max(length - outcome.offset, 0)
    return part.model_copy(update={"offset": outcome.offset, "length": left if left > len(text) else None})


async def _excerpt(logs: Logs, values: ValueStore, offset: int) -> tuple[str, int]:
    """RESULT_CHARACTERS of the output, in the order in which it was written, and the length of all of it."""
    streams: tuple[Number, Number] = (STDOUT, STDERR)
    decoders = {stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in streams}
    found, position = [""], 0
    async for piece in output(LoggedAttempt(logs=logs), values, {STDOUT: 0, STDERR: 0}):
        text = decoders[piece.stream].decode(piece.data)
        start, end = max(offset - position, 0), max(offset + RESULT_CHARACTERS - position, 0)
        found.append(text[start:end])
        position += len(text)
    return "".join(found), position
