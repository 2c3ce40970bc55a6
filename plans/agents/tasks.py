"""An agent's task list, and what the model's answers mean for it.

The list belongs to the orchestrator: a model never edits it, it says that the current task is finished, and the rule
here decides. `MEANINGS` has one line for every combination of the four answer fields; `meaning_of` applies it and
returns what is to be done as a `Decision`, a new task list included. An agent stops on a final answer to a finished
list, on a limit, or when it has been reminded too often in a row; it never stops because the model would like to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from pydantic import Field

from plans.agents.answers import AgentAnswer, Confidence, SimpleAnswer, ToolUse
from plans.agents.order import MAX_NUDGES, AgentEnd
from plans.model import Value

PLAN_ACTIONS = "plan_actions"
"""The tool by which a model chooses complex mode; it is answered with a task list, never executed."""
MAX_TASKS = 50


class TaskStatus(StrEnum):
    """Where a task stands."""

    OPEN = "open"
    CURRENT = "current"
    DONE = "done"


class Task(Value):
    """One objective; it may take several tool calls."""

    objective: str = Field(min_length=1, max_length=2_000, description="What is to be reached, in one line.")
    status: TaskStatus = TaskStatus.OPEN
    summary: str = Field(default="", description="What was done, in the model's words.")
    note: str = Field(default="", description="What the orchestrator has to say about it.")
    calls: int = Field(default=0, description="Tool calls made for it.")
    doubted: bool = Field(default=False, description="The model was asked whether it is done without any tool call.")


class TaskList(Value):
    """Tasks in order. Before the first answer all are open; then one is current, until all are done."""

    tasks: list[Task] = Field(min_length=1, max_length=MAX_TASKS)

    @classmethod
    def of(cls, objectives: Iterable[str]) -> TaskList:
        """A list in which nothing has been done."""
        return cls(tasks=[Task(objective=objective) for objective in objectives])

    @property
    def has_begun(self) -> bool:
        """Whether the model has been at it."""
        return any(task.status is not TaskStatus.OPEN for task in self.tasks)

    @property
    def position(self) -> int | None:
        """Index of the task to work on; none when all are done."""
        return next((index for index, task in enumerate(self.tasks) if task.status is not TaskStatus.DONE), None)

    @property
    def current(self) -> Task | None:
        """The task to work on."""
        return None if self.position is None else self.tasks[self.position]

    @property
    def remaining(self) -> int:
        """How many tasks are not done."""
        return sum(task.status is not TaskStatus.DONE for task in self.tasks)

    def begin(self) -> TaskList:
        """The list with its first unfinished task marked as current."""
        return self._with(status=TaskStatus.CURRENT)

    def called(self, count: int) -> TaskList:
        """The list after that many tool calls for the current task."""
        return self._with(calls=self.current.calls + count) if self.current else self

    def doubt(self) -> TaskList:
        """The list after the model was asked whether the current task is really done."""
        return self._with(doubted=True)

    def complete(self, summary: str, note: str = "") -> TaskList:
        """The list after its current task was finished: the next one, if any, is current."""
        return self._with(status=TaskStatus.DONE, summary=summary, note=note).begin()

    def _with(self, **changes: object) -> TaskList:
        if self.position is None:
            return self
        tasks = list(self.tasks)
        tasks[self.position] = tasks[self.position].model_copy(update=changes)
        return TaskList(tasks=tasks)


class Decision(Value):
    """What is to be done after an answer: first the calls, then what follows from the rest."""

    calls: list[ToolUse] = Field(default_factory=list, description="To be made now, before anything else.")
    tasks: TaskList | None = Field(default=None, description="The list as it stands when these calls succeed.")
    plan_actions: bool = Field(default=False, description="The model chose complex mode: ask it for a task list.")
    end: AgentEnd | None = Field(default=None, description="The run is over.")
    answer: str = Field(default="", description="The final answer of a run that is over.")
    confidence: Confidence | None = None
    notice: str = Field(default="", description="To be said to the model with the next prompt.")
    note: str = Field(default="", description="For the record: what was accepted or left out, and why.")
    nudges: int = Field(default=0, description="Reminders in a row so far; given to the next `meaning_of`.")


class Meaning(StrEnum):
    """What a combination of answer fields means."""

    WORK = "make the calls, stay with the task"
    WORK_THEN_NEXT = "make the calls, then the task is done"
    NEXT = "the task is done"
    STOP = "the run is done"
    NEXT_THEN_STOP = "the task is done; so is the run, if it was the last one"
    WORK_THEN_TELL = "make the calls, then say that a final answer comes alone"
    WORK_THEN_NEXT_THEN_TELL = "make the calls, then the task is done; say that a final answer comes alone"
    NOTHING = "say that an answer needs one of the fields"
    ONLY_THOUGHT = "say that reasoning alone changes nothing"


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
    Meaning.ONLY_THOUGHT: "Your answer held reasoning only. Return tool_calls, task_completed or final_answer as well.",
    Meaning.WORK_THEN_TELL: "You returned final_answer together with tool_calls. The calls were made, the final answer"
    " was not accepted: return it alone, after you have seen all results.",
}


def meaning_of(answer: AgentAnswer, tasks: TaskList, nudges: int = 0, limit: int = MAX_NUDGES) -> Decision:
    """What an answer in complex mode means. `nudges` is what the last decision said, `limit` how many there may be."""
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
    """The decision once its calls are made, `failed` naming the tools that did not succeed.

    A task that was to end after its calls does not end when one of them failed: the model is told, and decides.
    """
    names = ", ".join(dict.fromkeys(failed))
    open_before = before.begin()
    if not names or decision.tasks is None or decision.tasks.remaining == open_before.remaining:
        return decision
    notice = f"Task {_number(open_before)} is still open, because a tool call failed: {names}. {TRY_OR_COMPLETE}"
    return decision.model_copy(update={"tasks": open_before.called(len(decision.calls)), "notice": notice})


TRY_OR_COMPLETE = "Try another way, or return task_completed without tool_calls if it is done nevertheless."


def meaning_of_simple(answer: SimpleAnswer, nudges: int = 0, limit: int = MAX_NUDGES) -> Decision:
    """What an answer in simple mode means: calls go on, an answer stops, `plan_actions` turns to complex mode."""
    if any(call.tool == PLAN_ACTIONS for call in answer.tool_calls):
        others = len(answer.tool_calls) - sum(call.tool == PLAN_ACTIONS for call in answer.tool_calls)
        note = (
            f"not made, for the task list comes first: {others} other tool call{'s' * (others != 1)}" if others else ""
        )
        return Decision(plan_actions=True, note=note)
    if answer.tool_calls:
        early = "Your answer came together with tool_calls. The calls were made: answer when you have seen the results."
        return Decision(calls=answer.tool_calls, notice=early if answer.answer else "")
    if answer.answer:
        return Decision(end=AgentEnd.COMPLETED, answer=answer.answer, confidence=answer.confidence)
    return _nudge("Your answer was empty. Return tool_calls, or your answer.", None, nudges, limit)


def remains(tasks: TaskList) -> str:
    """What is not done yet, in a sentence per task."""
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
        return _final(answer, after, -1, limit, note)
    return Decision(tasks=after, note=note)


def _final(answer: AgentAnswer, tasks: TaskList, nudges: int, limit: int, note: str) -> Decision:
    if tasks.remaining == 0:
        return Decision(tasks=tasks, end=AgentEnd.COMPLETED, answer=answer.final_answer, note=note)
    told = f"final_answer was not accepted, because it stops the agent. {remains(tasks)}\n{HOW_TO_GO_ON}"
    return _nudge(told, tasks, nudges, limit, note)


HOW_TO_GO_ON = "Go on with the CURRENT TASK; if it is already done, return task_completed for it."


def _nudge(notice: str, tasks: TaskList | None, nudges: int, limit: int, note: str = "") -> Decision:
    if nudges >= limit:
        gave_up = f"given up after {nudges} reminders in a row without a tool call or a finished task"
        return Decision(tasks=tasks, end=AgentEnd.STALLED, note=gave_up, nudges=nudges)
    return Decision(tasks=tasks, notice=notice, note=note, nudges=nudges + 1)


def _doubt(tasks: TaskList) -> str:
    return (
        f"Task {_number(tasks)} was reported as completed, but no tool was called for it. If it needs work, return the"
        " tool_calls; if there is really nothing to do, return task_completed again."
    )


def _number(tasks: TaskList) -> int:
    return (tasks.position or 0) + 1
