"""Progress of a step that an agent works on, from the agent's task list: the message, the state and the view.

What the model says about its work becomes the step's notes (seed 000): the summaries of completed tasks while it works,
and in the end the beginning of its answer. Tasks are done in order, so the list is sent once and afterwards only the
number of tasks that are done. The next one is current while the step is running.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from plansurvive.plans.agents.tasks import TaskList
from plansurvive.plans.execution.messages import AgentProgress
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run, Status, StepState
from plansurvive.plans.views.models import TaskView

OBJECTIVE_BYTES = 140
"""Maximum length of an objective in a message, in bytes: fifty of them must fit."""
NOTES_CHARACTERS = 600
"""Maximum length of a step's notes; the newest stay. Half of it beside a new task list, to fit into a message."""
SENTENCE_CHARACTERS = 200
"""Maximum length of one summary in them, and of the beginning of the answer."""
MARKS = {"done": "✓", "current": ">", "open": " "}


def progress_of(tasks: TaskList | None, is_new: bool) -> dict[str, Any]:
    """Fields of the AgentProgress message; objectives only if the list `is_new`, notes if there are any."""
    if tasks is None:
        return {}
    objectives = [_cut(task.objective) for task in tasks.tasks] if is_new else None
    limit = NOTES_CHARACTERS // 2 if objectives else NOTES_CHARACTERS
    notes = notes_text((task.summary for task in tasks.tasks), limit)
    more = ({"tasks": objectives} if objectives else {}) | ({"notes": notes} if notes else {})
    return {"done": len(tasks.tasks) - tasks.remaining} | more


def note_progress(run: Run, message: AgentProgress, now: datetime) -> None:
    """Apply a progress message to its step, and log it. Ignored if the step was deleted in the meantime."""
    state = run.steps.get(message.step_id)
    if state is None:
        return
    state.tasks = state.tasks if message.tasks is None else message.tasks
    state.tasks_done = state.tasks_done if message.done is None else min(message.done, len(state.tasks))
    state.notes = state.notes if message.notes is None else message.notes
    if message.asks is not None and message.asks != state.agent_asks:
        state.agent_asks = message.asks
        run.next_seq()  # what Temporal's UI shows of the plan is written anew
    percent = 100 * state.tasks_done // len(state.tasks) if state.tasks else None
    if message.line:
        run.note(LogKind.AGENT, message.line, now, message.step_id, progress=percent)


def note_end(state: StepState, agent: Mapping[str, Any]) -> None:
    """Set the notes of a step whose agent has ended. `agent`: its view (AgentView)."""
    state.agent_asks = []
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


def notes_of(step: Step, state: StepState) -> str:
    """The notes of a step: the plan's own first, then what its agent said."""
    return "; ".join(filter(None, [step.notes, state.notes]))


def tasks_of(state: StepState) -> list[TaskView]:
    """The step's task list with the status of each task; empty if it has none."""
    current = state.tasks_done if state.status is Status.RUNNING else -1

    def status(index: int) -> Literal["done", "current", "open"]:
        return "done" if index < state.tasks_done else "current" if index == current else "open"

    return [TaskView(objective=text, status=status(index)) for index, text in enumerate(state.tasks)]


def position(tasks: Sequence[TaskView]) -> str:
    """Progress in the task list: `1/3 Write the tests`; empty without one."""
    done = sum(task.status == "done" for task in tasks)
    current = next((task.objective for task in tasks if task.status == "current"), "")
    return f"{done}/{len(tasks)} {current or 'tasks done'}" if tasks else ""


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
