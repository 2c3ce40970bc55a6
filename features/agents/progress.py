"""What the plan of an agent learns of its task list and notes: the message, and what is left once it has ended.

What the model says about its work becomes the step's notes (seed 000): the summaries of completed tasks while it works,
and in the end the beginning of its answer. Tasks are done in order, so the list is sent once and afterwards only the
number of tasks that are done (`features.agents.in_views`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from plansurvive.features.agents.model.tasks import TaskList
from plansurvive.plans.child_state import AtWork
from plansurvive.plans.run import StepState

OBJECTIVE_BYTES = 140
"""Maximum length of an objective in a message, in bytes: fifty of them must fit."""
NOTES_CHARACTERS = 600
"""Maximum length of a step's notes; the newest stay. Half of it beside a new task list, to fit into a message."""
SENTENCE_CHARACTERS = 200
"""Maximum length of one summary in them, and of the beginning of the answer."""


def progress_of(tasks: TaskList | None, is_new: bool) -> dict[str, Any]:
    """Fields of the AgentProgress message; objectives only if the list `is_new`, notes if there are any."""
    if tasks is None:
        return {}
    objectives = [_cut(task.objective) for task in tasks.tasks] if is_new else None
    limit = NOTES_CHARACTERS // 2 if objectives else NOTES_CHARACTERS
    notes = notes_text((task.summary for task in tasks.tasks), limit)
    more = ({"tasks": objectives} if objectives else {}) | ({"notes": notes} if notes else {})
    return {"done": len(tasks.tasks) - tasks.remaining} | more


def note_end(state: StepState, agent: Mapping[str, Any]) -> None:
    """Set the notes of a step whose agent has ended. `agent`: its view (AgentView)."""
    if (work := state.known_part(AtWork)) is not None:
        state.keep(work.model_copy(update={"asks": []}))
    answer = str(agent.get("answer") or "")
    said = "" if answer.lstrip()[:1] in ("{", "[") else _beginning(answer)  # of JSON, the value is shown
    state.notes = notes_text([*(task.get("summary", "") for task in agent.get("tasks", [])), said]) or state.notes


def notes_text(said: Iterable[str], limit: int = NOTES_CHARACTERS) -> str:
    """What was said as one line of `limit` characters at most; the oldest parts are left out first."""
    lines = [_short(" ".join(text.split())) for text in said]
    kept: list[str] = []
    for line in reversed([line for line in lines if line]):
        if sum(map(len, kept)) + 2 * len(kept) + len(line) + len("…; ") > limit:
            return "; ".join(["…", *kept])
        kept.insert(0, line)
    return "; ".join(kept)


def _short(text: str) -> str:
    return text if len(text) <= SENTENCE_CHARACTERS else f"{text[: SENTENCE_CHARACTERS - 1]}…"


def _beginning(answer: str) -> str:
    """The first sentences of an answer that fit, or of the first what does."""
    text = " ".join(answer[: 10 * SENTENCE_CHARACTERS].split())
    ends = [found.end() for found in re.finditer(r"[.!?](?= |$)", text) if found.end() <= SENTENCE_CHARACTERS]
    return text if len(text) <= SENTENCE_CHARACTERS else text[: ends[-1]] if ends else text


def _cut(text: str) -> str:
    data = text.encode(errors="replace")
    return text if len(data) <= OBJECTIVE_BYTES else data[: OBJECTIVE_BYTES - 3].decode(errors="ignore") + "…"
