"""Signal, update and query handlers shared by PlanWorkflow and AgentWorkflow.

A message may arrive at any moment, also before the plan is checked. `plans.execution.messages` parses it,
`plans.execution.approvals` decides on it; a bad signal becomes an entry in the run's log. No message can block a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from plans.errors import PlanError, Refused
from plans.execution import approvals, file_tracking
from plans.execution.messages import (
    Action,
    AgentProgress,
    Approve,
    Control,
    ControlPlan,
    Decide,
    Deny,
    FilesChanged,
    check_control,
    read,
)
from plans.execution.resume import INTERRUPTED
from plans.log import LogKind
from plans.model import Problem
from plans.run import ENDED, Run
from plans.views import queries
from plans.views.agent_progress import note_progress
from plans.views.summary import summary_of
from workflows.execution import Execution
from workflows.inputs import invalid, refusal

_SAID: Mapping[Action, str] = MappingProxyType({
    "begin": "review ended", "pause": "paused", "unpause": "unpaused", "interrupt": INTERRUPTED
})  # fmt: skip
"""What became of a control message, as the log says it."""


class MessageHandlers:
    """The signals, updates and queries of a PlanWorkflow; `_execution` is absent only when the plan is no plan."""

    _execution: Execution | None = None
    _invalid: Sequence[Problem] = ()

    def _started(self) -> Execution:
        if self._execution is None:
            raise invalid(self._invalid)
        return self._execution

    def _view(self, arguments: Sequence[Any]) -> dict[str, Any]:
        return queries.view(self._started().run, arguments, self._started().schedule)

    def _text(self, arguments: Sequence[Any]) -> str:
        return queries.text(self._started().run, arguments)

    def _state(self) -> dict[str, Any]:
        return queries.state(self._started().run)

    def _try(self, what: str, step_id: str | None, act: Callable[[], Any]) -> None:
        """Do what a signal asks for; a refusal becomes a line in the log."""
        if self._execution is None:
            return
        run = self._execution.run
        try:
            if run.status in ENDED:
                raise Refused(f"the plan has ended ({run.status})", "PLAN_CLOSED")
            act()
        except Refused as refusal:
            known = step_id if step_id in run.steps else None
            text = f"REFUSED:{refusal.code} {what}: {refusal.message}"
            run.note(LogKind.REFUSED, text, workflow.now(), known, code=refusal.code, subject=what)

    @workflow.signal(
        description='Let a waiting step start: {"stepId": "...", "by": "...", "comment": "...", "args": {}}'
    )
    def approve(self, *arguments: Any) -> None:
        """A person lets a step start. Counts also before the step waits."""
        self._try("approve", _step_of(arguments), lambda: self._signal_decision(read(Approve, arguments), True))

    @workflow.signal(description='Skip a waiting step: {"stepId": "...", "by": "...", "comment": "..."}')
    def deny(self, *arguments: Any) -> None:
        """A person does not let a step start."""
        self._try("deny", _step_of(arguments), lambda: self._signal_decision(read(Deny, arguments), False))

    @workflow.signal(description="Start no further step until unpause.")
    def pause(self, *arguments: Any) -> None:
        """Running steps go on; nothing starts."""
        self._signal_control("pause", arguments)

    @workflow.signal(description="Let steps start again.")
    def unpause(self, *arguments: Any) -> None:
        """Steps start again."""
        self._signal_control("unpause", arguments)

    @workflow.signal(description="Stop at the next safe point and keep everything, to be resumed.")
    def interrupt(self, *arguments: Any) -> None:
        """Running steps may end, nothing starts, the plan ends as cancelled; `plan resume` goes on from there."""
        self._signal_control("interrupt", arguments)

    @workflow.signal(description="End the review and start the plan.")
    def begin(self, *arguments: Any) -> None:
        """The review is over."""
        self._signal_control("begin", arguments)

    @workflow.signal(description='Files changed by others: {"paths": ["src/main.py"]}')
    def files_changed(self, *arguments: Any) -> None:
        """What the run saw of these files or directories is stale."""

        def mark() -> None:
            message = read(FilesChanged, arguments)
            file_tracking.changed(self._started().run, message.paths, message.by, workflow.now())

        self._try("files_changed", None, mark)

    @workflow.signal(description="For agents: where the one that does a step stands.")
    def agent_progress(self, *arguments: Any) -> None:
        """The agent's task list is the step's progress; the line goes into the log."""

        def note() -> None:
            note_progress(self._started().run, read(AgentProgress, arguments), workflow.now())

        self._try("agent_progress", None, note)

    @workflow.signal(dynamic=True)
    def unknown(self, name: str, _: Sequence[RawValue]) -> None:
        """An unknown signal becomes an entry in the log."""

        def refuse() -> None:
            raise Refused(f"there is no signal '{name[:100]}'", "UNKNOWN_SIGNAL")

        self._try("signal", None, refuse)

    @workflow.update(description='Approve or deny with an answer: {"stepId": "...", "approved": true}')
    def decide(self, *arguments: Any) -> dict[str, Any]:
        """As approve and deny; returns the decision as recorded."""
        message = read(Decide, arguments)
        return approvals.decide(self._started().run, message, workflow.now(), "update").model_dump(mode="json")

    @decide.validator
    def _may_decide(self, *arguments: Any) -> None:
        try:
            run = self._started().run
            if run.status in ENDED:
                raise Refused(f"the plan has ended ({run.status})", "PLAN_CLOSED")
            approvals.check(run, read(Decide, arguments))
        except PlanError as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=True) from error

    @workflow.update(description='Begin, pause, unpause or interrupt with an answer: {"action": "pause", "by": "..."}')
    def control(self, *arguments: Any) -> dict[str, Any]:
        """As the signals of these names; returns what became of it, and the plan's status."""
        message = read(ControlPlan, arguments)
        text = self._control(message.action, message.by)
        return {"action": message.action, "text": text, "status": self._started().run.status.value}

    @control.validator
    def _may_control(self, *arguments: Any) -> None:
        run: Run | None = None
        try:
            run = self._started().run
            check_control(run, read(ControlPlan, arguments).action)
        except PlanError as error:
            raise refusal(error, run) from error

    @workflow.query(description='The plan with the status and result of every step; in short: {"brief": true}')
    def plan(self, *arguments: Any) -> dict[str, Any]:
        """The joined view (seed 004's Plan with statuses and results)."""
        return self._view(arguments)

    @workflow.query(description='Progress events after a number: {"since": 0}')
    def events(self, *arguments: Any) -> list[dict[str, Any]]:
        """Events numbered higher than `since`, at most `limit` (1,000)."""
        return queries.events(self._started().run, arguments)

    @workflow.query(description='Files as the run last saw them: {"paths": ["src/main.py"]}, or all')
    def stamps(self, *arguments: Any) -> dict[str, Any]:
        """Hash and size of every file the run read or made, by path."""
        return queries.stamps(self._started().run, arguments)

    @workflow.query(description='The plan as text; of a big one the steps that move: {"limit": 100}')
    def text(self, *arguments: Any) -> str:
        """Seed 000's display."""
        return self._text(arguments)

    @workflow.query(description="Counts, duration, files written, what failed.")
    def summary(self, *_: Any) -> dict[str, Any]:
        """The summary so far; the last one when the plan has ended."""
        return summary_of(self._started().run).to_json()

    @workflow.query(description="All there is to know of the run, for another run to go on from.")
    def state(self, *_: Any) -> dict[str, Any]:
        """The Run, as `plans.execution.resume` takes it."""
        return self._state()

    def _signal_decision(self, message: Approve | Deny, approved: bool) -> None:
        decision = Decide(approved=approved, **dict(message))
        approvals.decide(self._started().run, decision, workflow.now(), "signal")

    def _signal_control(self, action: Action, arguments: Sequence[Any]) -> None:
        self._try(action, None, lambda: self._control(action, read(Control, arguments, optional=True).by))

    def _control(self, action: Action, by: str) -> str:
        """Do it; returns what became of it. Raises Refused when the plan is not in a state for it."""
        execution, now = self._started(), workflow.now()
        check_control(execution.run, action)
        said = _SAID[action] + (f" by {by}" if by else "")
        if action == "interrupt":
            execution.interrupt(said)
        elif action == "pause":
            execution.schedule.pause(now, said)
        elif action == "unpause":
            execution.schedule.unpause(now, said)
        else:
            execution.schedule.begin(now)
            execution.run.note(LogKind.BEGUN, said, now)
        return said


def _step_of(arguments: Sequence[Any]) -> str | None:
    """The id of the step that a message names, if it names one."""
    found = arguments[0].get("stepId") if len(arguments) == 1 and isinstance(arguments[0], dict) else None
    return found if isinstance(found, str) else None
