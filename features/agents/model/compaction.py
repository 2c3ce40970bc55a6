"""Keeps an agent's prompts within its model's context window (`PLANS_CONTEXT_TOKENS`), by a rule:

1. A prompt's tokens are estimated from its bytes: a quarter, or what the endpoint counted for the last prompt.
2. A prompt of more than FULL of the window is compacted to AFTER of it, so that this is rare and prompts begin alike in
   between: the oldest answers and results become one line per call, which names call, arguments, end and length.
3. Of lines that fill more than LINES of the window, the oldest are left out, and a line says how many.
4. Of completed tasks the summary remains; reasoning remains, in short, while its task is current.
5. The last answer and its results, the request, the task list with the summaries, and agents.md texts stay whole.

A model reads any result again with `read_result`. Nothing else is left out of a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from plansurvive.features.agents.model.conversation import TOKENS_PER_BYTE, Conversation, EarlierCall, Messages, Turn
from plansurvive.plans.llm.prompt_parts import READ_RESULT, compacted_text
from plansurvive.plans.llm.shortened import json_line

FULL = 0.75
"""Share of the window that a prompt may fill; the rest is for the answer, and for errors of the estimate."""
AFTER = 0.4
"""Share of the window that a compacted prompt fills, if it can."""
LINES = 0.2
"""Share of the window that the lines of compacted turns may fill."""
REFUSED = 0.9
"""Share of a refused prompt's estimated tokens that is taken for the window from then on."""
REASONING_CHARACTERS = 300
"""Maximum length of the reasoning that a compacted answer leaves behind, if its task is still current."""
_MESSAGE_BYTES = 16
"""Bytes added for each message, for its role."""
_RATIOS = (TOKENS_PER_BYTE / 2, 1.0)
"""Least and greatest tokens per byte that are believed of an endpoint."""


class Fit(NamedTuple):
    """A conversation that fits into the window, as far as compaction can make it."""

    said: Conversation
    messages: Messages
    tokens: int
    """Estimated."""
    compacted: int
    """Number of results that were compacted for this prompt."""


def fitted(
    said: Conversation, window: int, compose: Callable[[Conversation], Messages], schema_bytes: int, task: int | None
) -> Fit:
    """The conversation and its messages, compacted if they fill too much of the window (in tokens).

    `schema_bytes`: length of the answer's schema, which is part of the prompt. `task`: number of the current task.
    """
    window = min(window, said.window or window)
    messages = compose(said)
    tokens = estimated(said, bytes_of(messages) + schema_bytes)
    if tokens <= window * FULL:
        return Fit(said, messages, tokens, 0)
    shorter, count = _compacted(said, tokens, window, task)
    messages = compose(shorter)
    return Fit(shorter, messages, estimated(said, bytes_of(messages) + schema_bytes), count)


def refused(fit: Fit) -> Conversation:
    """The conversation after the endpoint refused its prompt as too long: its window is smaller than that."""
    return fit.said.model_copy(update={"window": max(1, int(fit.tokens * REFUSED))})


def counted(said: Conversation, sent_bytes: int, tokens: int) -> Conversation:
    """The conversation after an endpoint counted the tokens of its prompt."""
    least, most = _RATIOS
    ratio = min(max(tokens / sent_bytes, least), most) if sent_bytes and tokens else said.ratio
    return said.model_copy(update={"ratio": ratio})


def estimated(said: Conversation, size: int) -> int:
    """The tokens of so many bytes."""
    return int(size * said.ratio)


def bytes_of(messages: Messages) -> int:
    """The length of messages in bytes of UTF-8."""
    return sum(_MESSAGE_BYTES + _length(message["content"]) for message in messages)


def _compacted(said: Conversation, tokens: int, window: int, task: int | None) -> tuple[Conversation, int]:
    """The conversation compacted from `tokens` to AFTER of the window if possible, and how many results were."""
    left = (tokens - window * AFTER) / said.ratio  # bytes
    earlier = [each for each in said.earlier if not each.thought or each.task == task]
    left -= _bytes(said.earlier) - _bytes(earlier)
    turns, count = 0, 0
    for turn in said.turns[:-1]:
        if left <= 0:
            break
        lines = _lines(turn, task)
        left -= _turn_bytes(turn) - _bytes(lines)
        earlier, turns, count = earlier + lines, turns + 1, count + len(turn.outcomes)
    is_too_long = left > window * (FULL - AFTER) / said.ratio
    kept = _newest(earlier, 0.0 if is_too_long else window * LINES / said.ratio)
    gone = earlier[: len(earlier) - len(kept)]
    changes = {
        "turns": said.turns[turns:],
        "earlier": kept,
        "left_out": said.left_out + sum(not each.thought for each in gone),
        "left_out_to": max([said.left_out_to, *(each.call or 0 for each in gone)]),
    }
    return said.model_copy(update=changes), count


def _newest(lines: list[EarlierCall], space: float) -> list[EarlierCall]:
    """The lines, if they fit into so many bytes; else the newest that fit into half of it, so that this is rare."""
    if _bytes(lines) <= space:
        return lines
    kept, left = len(lines), space / 2
    while kept and (left := left - _bytes([lines[kept - 1]])) >= 0:
        kept -= 1
    return lines[kept:]


def _bytes(lines: list[EarlierCall]) -> int:
    return sum(_length(each.line) + 1 for each in lines)


def _lines(turn: Turn, task: int | None) -> list[EarlierCall]:
    """What remains of a turn: its results, and its reasoning if the task is still current."""
    rows = [
        EarlierCall(line=compacted_text(each), call=None if each.tool == READ_RESULT else each.call)
        for each in turn.outcomes
    ]
    thought = _reasoning(turn.said) if turn.task == task and not turn.problems else ""
    if not thought:
        return rows
    return [EarlierCall(line=f"your reasoning: {json_line(thought)}", thought=True, task=task), *rows]


def _reasoning(said: str) -> str:
    """The beginning of an answer's reasoning; empty if it has none, or was cut where it cannot be read."""
    try:
        fields = json.loads(said)
    except ValueError:
        return ""
    text = fields.get("reasoning") if isinstance(fields, dict) else ""
    text = text if isinstance(text, str) else ""
    return text if len(text) <= REASONING_CHARACTERS else f"{text[:REASONING_CHARACTERS]}…"


def _turn_bytes(turn: Turn) -> int:
    return 2 * _MESSAGE_BYTES + _length(turn.said) + _length(turn.told) + _length(turn.notice)


def _length(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
