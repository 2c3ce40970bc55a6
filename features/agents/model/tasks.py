"""An agent's task list, and how the model's answers change it.

The list belongs to the orchestrator. A model never edits it: it reports the current task as completed, and the rules
here decide. `MEANINGS` has one line for each combination of the four answer fields; `meaning_of` applies it and returns
a `Decision` that includes the new task list. An agent stops on a final answer once all tasks are completed, on a limit,
or after too many consecutive reminders; it never stops just because the model wants to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from pydantic import Field

from plansurvive.features.agents.model.answers import AgentAnswer, Confidence, SimpleAnswer, ToolUse
from plansurvive.features.agents.model.order import AgentEnd
from plansurvive.plans.model import Value
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.views.models.agents import MAX_NUDGES, Task, TaskStatus

PLAN_ACTIONS = "plan_actions"
"""The pseudo-tool with which a model chooses complex mode; leads to a task list and is never executed."""
MAX_TASKS = 50


class TaskList(Value):
    """Tasks in order. All are open before the first answer; after it one is current until all are done."""

    tasks: list[Task] = Field(min_length=1, max_length=MAX_TASKS)

    @classmethod
    def of(cls, objectives: Iterable[str]) -> TaskList:
        """A list in which all tasks are open."""
        return cls(tasks=[Task(objective=objective) for objective in objectives])

    @property
    def has_begun(self) -> bool:
        """Whether the model has started working through the list."""
        return any(task.status is not TaskStatus.OPEN for task in self.tasks)

    @property
    def position(self) -> int | None:
        """Index of the current task; None if all are done."""
        return next((index for index, task in enumerate(self.tasks) if task.status is not TaskStatus.DONE), None)

    @property
    def current(self) -> Task | None:
        """The current task; None if all are done."""
        return None if self.position is None else self.tasks[self.position]

    @property
    def remaining(self) -> int:
        """Number of tasks that are not done."""
        return sum(task.status is not TaskStatus.DONE for task in self.tasks)

    def begin(self) -> TaskList:
        """Mark the first unfinished task as current."""
        return self._with(status=TaskStatus.CURRENT)

    def called(self, count: int) -> TaskList:
        """Count tool calls for the current task."""
        return self._with(calls=self.current.calls + count) if self.current else self

    def doubt(self) -> TaskList:
        """Record that the model was asked to confirm that the current task is completed."""
        return self._with(doubted=True)

    def complete(self, summary: str, note: str = "") -> TaskList:
        """Complete the current task; the next one, if any, becomes current."""
        return self._with(status=TaskStatus.DONE, summary=summary, note=note).begin()

    def _with(self, **changes: object) -> TaskList:
        if self.position is None:
            return self
        tasks = list(self.tasks)
        tasks[self.position] = tasks[self.position].model_copy(update=changes)
        return TaskList(tasks=tasks)


class Decision(Value):
    """What to do about an answer: first make the calls, then apply the rest."""

    calls: list[ToolUse] = Field(default_factory=list, description="Tool calls to make first.")
    tasks: TaskList | None = Field(default=None, description="The new task list, provided that these calls succeed.")
    plan_actions: bool = Field(default=False, description="The model chose complex mode: request a task list.")
    end: AgentEnd | None = Field(default=None, description="Set if the run ends.")
    answer: str = Field(default="", description="The final answer, if the run ends.")
    confidence: Confidence | None = None
    notice: str = Field(default="", description="Notice to the model in the next prompt.")
    note: str = Field(default="", description="For the log: what was accepted or omitted, and why.")
    nudges: int = Field(default=0, description="Consecutive reminders so far; pass it to the next `meaning_of`.")

    def without_args(self) -> Decision:
        """The decision to keep while its calls are made: their arguments are in the steps."""
        return self.model_copy(update={"calls": [ToolUse(tool=call.tool) for call in self.calls]})


class Meaning(StrEnum):
    """What to do for a combination of answer fields."""

    WORK = "make the calls; the task stays open"
    WORK_THEN_NEXT = "make the calls, then complete the task"
    NEXT = "complete the task"
    STOP = "end the run"
    NEXT_THEN_STOP = "complete the task, and end the run if it was the last one"
    WORK_THEN_TELL = "final_answer was not accepted, because it came together with tool_calls"
    WORK_THEN_NEXT_THEN_TELL = (
        "task completed after its tool_calls; final_answer was not accepted, because it came with them"
    )
    NOTHING = "remind the model that an answer needs one of the fields"
    ONLY_THOUGHT = "remind the model that reasoning alone has no effect"


_, X = False, True
MEANINGS: Mapping[tuple[bool, bool, bool, bool], Meaning] = {
    # reasoning, tool_calls, task_completed, final_answer
    (_, _, _, _): Meaning.NOTHING,
    (X, _, _, _): Meaning.ONLY_THOUGHT,
    (_, X, _, _): Meaning.WORK,
    (X, X, _, _): Meaning.WORK,
    (_, X, X, _): Meaning.WORK_THEN_NEXT,
    (X, X, X, _): Meaning.WORK_THEN_NEXT,
    (_, _, X, _): Meaning.NEXT,
    (X, _, X, _): Meaning.NEXT,
    (_, _, _, X): Meaning.STOP,
    (X, _, _, X): Meaning.STOP,
    (_, _, X, X): Meaning.NEXT_THEN_STOP,
    (X, _, X, X): Meaning.NEXT_THEN_STOP,
    (_, X, _, X): Meaning.WORK_THEN_TELL,
    (X, X, _, X): Meaning.WORK_THEN_TELL,
    (_, X, X, X): Meaning.WORK_THEN_NEXT_THEN_TELL,
    (X, X, X, X): Meaning.WORK_THEN_NEXT_THEN_TELL,
}

NOTICES: Mapping[Meaning, str] = {
    Meaning.NOTHING: "Your answer was empty. Return tool_calls, task_completed or final_answer.",
    Meaning.ONLY_THOUGHT: "Your answer was reasoning only. Return tool_calls, task_completed or final_answer as well.",
    Meaning.WORK_THEN_TELL: "You returned final_answer together with tool_calls. The calls were made, but the final"
    " answer was not accepted: return it on its own, after you have seen all results.",
}


def meaning_of(answer: AgentAnswer, tasks: TaskList, nudges: int = 0, limit: int = MAX_NUDGES) -> Decision:
    """Decide on an answer in complex mode. `nudges`: from the last decision; `limit`: maximum number of reminders."""
    meaning = MEANINGS[answer.fields]
    tasks = tasks.begin()
    if answer.tool_calls:
        return _work(answer, meaning, tasks)
    if meaning is Meaning.STOP:
        return _final(answer, tasks, nudges, limit, note="")
    if meaning in (Meaning.NEXT, Meaning.NEXT_THEN_STOP):
        return _completed(answer, tasks, nudges, limit)
    return _nudge(NOTICES[meaning], tasks, nudges, limit)


def after_calls(decision: Decision, before: TaskList, failed: Iterable[str]) -> Decision:
    """The decision after its calls were made. `failed`: names of the tools that failed.

    If one failed, the task stays open even if it was reported as completed: the model is asked to decide.
    """
    names = ", ".join(dict.fromkeys(failed))
    open_before = before.begin()
    if not names or decision.tasks is None or decision.tasks.remaining == open_before.remaining:
        return decision
    notice = f"Task {_number(open_before)} is still open, because a tool call failed: {names}. {TRY_OR_COMPLETE}"
    return decision.model_copy(update={"tasks": open_before.called(len(decision.calls)), "notice": notice})


TRY_OR_COMPLETE = "Try another way, or return task_completed without tool_calls if the task is complete anyway."


def meaning_of_simple(answer: SimpleAnswer, nudges: int = 0, limit: int = MAX_NUDGES) -> Decision:
    """Decide on an answer in simple mode: calls continue, an answer ends, `plan_actions` switches to complex mode."""
    if any(call.tool == PLAN_ACTIONS for call in answer.tool_calls):
        others = len(answer.tool_calls) - sum(call.tool == PLAN_ACTIONS for call in answer.tool_calls)
        note = f"the task list comes first: {number_of(others, 'other tool call')} not made" if others else ""
        return Decision(plan_actions=True, note=note)
    if answer.tool_calls:
        early = "Your answer came together with tool_calls. The calls were made: answer once you have seen the results."
        return Decision(calls=answer.tool_calls, notice=early if answer.answer else "")
    if answer.answer:
        return Decision(end=AgentEnd.COMPLETED, answer=answer.answer, confidence=answer.confidence)
    return _nudge("Your answer was empty. Return tool_calls or an answer.", None, nudges, limit)


def remains(tasks: TaskList) -> str:
    """The tasks that are not done, one per line, for the model."""
    open_tasks = [(n, task) for n, task in enumerate(tasks.tasks, 1) if task.status is not TaskStatus.DONE]
    if not open_tasks:
        return f"All {len(tasks.tasks)} tasks are complete: return final_answer."
    lines = [f"- Task {number}: {task.objective}" for number, task in open_tasks]
    return "\n".join([f"{len(open_tasks)} of {len(tasks.tasks)} tasks remain:", *lines])


def _work(answer: AgentAnswer, meaning: Meaning, tasks: TaskList) -> Decision:
    after = tasks.called(len(answer.tool_calls))
    if answer.task_completed:
        after = after.complete(answer.task_completed)
    notice = f"{NOTICES[Meaning.WORK_THEN_TELL]} {remains(after)}" if answer.final_answer else ""
    return Decision(calls=answer.tool_calls, tasks=after, notice=notice, note=meaning.value if notice else "")


def _completed(answer: AgentAnswer, tasks: TaskList, nudges: int, limit: int) -> Decision:
    task, note = tasks.current, ""
    if task is None:
        if answer.final_answer:
            return _final(answer, tasks, nudges, limit, note)
        return _nudge(remains(tasks), tasks, nudges, limit)
    if not task.calls:
        if not task.doubted:
            return _nudge(_doubt(tasks), tasks.doubt(), nudges, limit)
        note = "completed without any tool call"
    after = tasks.complete(answer.task_completed, note)
    if answer.final_answer:
        return _final(answer, after, -1, limit, note)  # a completed task resets the count; a reminder makes it 0
    return Decision(tasks=after, note=note)


def _final(answer: AgentAnswer, tasks: TaskList, nudges: int, limit: int, note: str) -> Decision:
    if tasks.remaining == 0:
        return Decision(tasks=tasks, end=AgentEnd.COMPLETED, answer=answer.final_answer, note=note)
    notice = f"final_answer was not accepted, because it stops the agent. {remains(tasks)}\n{HOW_TO_CONTINUE}"
    return _nudge(notice, tasks, nudges, limit, note)


HOW_TO_CONTINUE = "Continue with the CURRENT TASK; if it is already complete, return task_completed for it."


def _nudge(notice: str, tasks: TaskList | None, nudges: int, limit: int, note: str = "") -> Decision:
    if nudges >= limit:
        gave_up = f"stopped after {nudges} reminders in a row without a tool call or a completed task"
        return Decision(tasks=tasks, end=AgentEnd.STALLED, note=gave_up, nudges=nudges)
    return Decision(tasks=tasks, notice=notice, note=note, nudges=nudges + 1)


def _doubt(tasks: TaskList) -> str:
    return (
        f"Task {_number(tasks)} was reported as completed, but no tool was called for it. If it needs work, return"
        " tool_calls; if there is really nothing to do, return task_completed again."
    )


def _number(tasks: TaskList) -> int:
    return (tasks.position or 0) + 1
