"""Signal, update and query handlers shared by PlanWorkflow and AgentWorkflow.

A message may arrive at any moment, even before the plan is validated. `plans.execution.messages` parses it and
`plans.execution.deciding` applies decisions. A malformed or illegal signal becomes a log entry, an update fails with
a code; neither can block or fail a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.execution import file_tracking
from plansurvive.plans.execution.deciding import patterns
from plansurvive.plans.execution.messages import (
    Action,
    Approve,
    Control,
    ControlPlan,
    Decide,
    Deny,
    FilesChanged,
    check_control,
    read,
)
from plansurvive.plans.execution.resume import INTERRUPTED
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Problem
from plansurvive.plans.run import ENDED, PlanStatus, Run
from plansurvive.plans.run.feature import RuleSet
from plansurvive.plans.run.people import who_of
from plansurvive.plans.views import queries
from plansurvive.plans.views.summary import summary_of
from plansurvive.workflows import completion
from plansurvive.workflows.admission import Admission, Opening
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import Collaborators, Features, Message
from plansurvive.workflows.inputs import invalid, refusal, refusing, require_stored, step_of, undecodable

_LOG_TEXTS: Mapping[Action, str] = MappingProxyType({
    "begin": "review ended", "pause": "paused", "unpause": "unpaused", "interrupt": INTERRUPTED,
    "clear_session": "session cleared", "abandon": "cancelled again: the plan ends at once",
})  # fmt: skip
"""Log entry of each control message that was carried out."""
_SIGNED: tuple[Action, ...] = ("begin", "unpause", "clear_session")
"""The control messages that let steps do more: start, or edit files they have not read. Stopping a plan needs none."""


class MessageHandlers:
    """Base class with the handlers. `_execution` is None only when the workflow's input was invalid."""

    features: ClassVar[Features] = Features()
    _execution: Execution | None = None
    _collaborators = Collaborators()
    _admission: Admission
    _watch: asyncio.Task[None]
    """See `Admission.watch`."""
    _invalid: Sequence[Problem] = ()
    _signals = 0
    _is_gathered = _hears = False
    _early: Sequence[tuple[Message, Sequence[Any]]] = ()
    """Signals of features that came before the features of the run were known."""
    _waiting: tuple[object, ...] = ()
    """Messages that have come while a feature held the run, or behind one of these, in order."""
    _tasks: tuple[asyncio.Task[None], ...] = ()
    """Those of them that are signals."""

    def _gather(self) -> None:
        """Once the facts are known: make the collaborators of the features that the run was begun with."""
        self._collaborators, self._is_gathered = self.features.gathered(self._started()), True

    def _hear(self) -> None:
        """Once signatures can be verified: deliver the messages to features that came before."""
        self._hears = True
        early, self._early = self._early, ()
        for message, arguments in early:
            self._take(message, arguments)

    def _opened(self, arguments: Sequence[Any]) -> None:
        """Once there is a run: decide who may start it and decide; take its features, if it continues another one.

        Raises InvalidPlan, FeatureMissing.
        """
        self._started().run.views = self.features.views
        opening = Opening.of(self._started().run)
        kind = self.features.admission
        kind = kind if opening.must_verify(arguments, kind) else Admission
        self._admit(kind(opening, arguments))
        if opening.run.status is not PlanStatus.DRAFT:
            self._gather()  # now, as messages come before `run` is called, and validators are asked about them

    def _judge(self) -> None:
        """Once the facts are known: verify signatures if they ask for it, and void earlier decisions that have none."""
        admission, kind = self._admission, self.features.admission
        if kind.verifies(self._started().run) and not isinstance(admission, kind):
            self._admit(kind(admission.opening))
            self._keep_watch()
        self._admission.judge()

    def _admit(self, admission: Admission) -> None:
        self._admission = admission
        self._started().before_turn = admission.turn

    def _keep_watch(self) -> None:
        self._watch = asyncio.create_task(self._admission.watch())

    def _admitted(self) -> Admission:
        self._started()  # it raises where there is none
        return self._admission

    def _started(self) -> Execution:
        if self._execution is None:
            raise invalid(self._invalid)
        return self._execution

    def signalled(self, message: Message, arguments: Sequence[Any]) -> None:
        """Take a signal of a feature; a refusal becomes a log entry."""
        if self._hears or self._invalid or message.early:
            self._take(message, arguments)
        else:
            self._early = (*self._early, (message, arguments))

    def _take(self, message: Message, arguments: Sequence[Any]) -> None:
        def act() -> None:
            value = message.read(arguments)  # what cannot be read is no use of its signature
            if message.signed:
                value = self._admitted().admit(value, message.name, arguments)
            if message.early and not self._hears:
                self.features.early(self._started(), message, value)
            else:
                self._collaborators.handle(message, message.method, value)

        self._try(message.name, step_of(arguments), arguments, act, between=message.between)

    async def updated(self, message: Message, arguments: Sequence[Any]) -> Any:
        """Take an update of a feature. Returns its answer."""
        require_stored(arguments)
        run = self._started().run
        was_asked_early = self._is_gathered and not self._hears
        await workflow.wait_condition(lambda: self._hears or run.status in ENDED)
        waited = await self._in_turn()
        with refusing(run):
            _require_open(run)
            value = message.read(arguments)
            if message.validator and (was_asked_early or waited):  # again: what it has found may be outdated by now
                self._collaborators.handle(message, message.validator, value)
            if message.signed:
                value = self._admitted().admit(value, message.name, arguments)
            answer = self._collaborators.handle(message, message.method, value)
            return await answer if isinstance(answer, Awaitable) else answer

    def may_update(self, message: Message, arguments: Sequence[Any]) -> None:
        """Refuse an update of a feature that its run would refuse. Raises ApplicationError."""
        run: Run | None = None
        try:
            run = self._started().run
            _require_open(run)
            value = message.read(arguments)
            if message.signed:
                self._admitted().check(message.name, arguments)
            if message.validator and self._is_gathered:
                self._collaborators.handle(message, message.validator, value)
        except PlanError as error:
            raise refusal(error, run) from error

    def queried(self, message: Message, arguments: Sequence[Any]) -> Any:
        """The answer to a query of a feature."""
        return self._collaborators.handle(message, message.method, message.read(arguments))

    @property
    def _rules(self) -> RuleSet:
        return self._started().schedule.rules

    @property
    def _must_wait(self) -> bool:
        """Whether a message that comes now waits: the run may not change, or others wait already."""
        return self._execution is not None and (self._execution.is_held or bool(self._waiting))

    async def _in_turn(self) -> bool:
        """Wait until the run may change, and the messages that came before have been handled. Whether it had to wait.

        The caller handles its message before it awaits anything else.
        """
        if not self._must_wait:
            return False
        execution, mine = self._started(), object()
        self._waiting = (*self._waiting, mine)
        await workflow.wait_condition(lambda: self._waiting[0] is mine and not execution.is_held)
        self._waiting = self._waiting[1:]
        execution.wake()
        return True

    def _view(self, arguments: Sequence[Any]) -> dict[str, Any]:
        return queries.view(self._started().run, arguments, self._started().schedule)

    def _text(self, arguments: Sequence[Any]) -> str:
        return queries.text(self._started().run, arguments)

    def _state(self) -> dict[str, Any]:
        return queries.state(self._started().run)

    def _try(
        self, what: str, step_id: str | None, arguments: Sequence[Any], act: Callable[[], Any], *, between: bool = False
    ) -> None:
        """Handle a signal; a refusal becomes a log entry. `between`: see `Message.between`."""

        async def later() -> None:
            await self._in_turn()
            self._handle(what, step_id, arguments, act, between)

        if self._must_wait:
            self._tasks = (*(task for task in self._tasks if not task.done()), asyncio.create_task(later()))
        else:
            self._handle(what, step_id, arguments, act, between)

    def _handle(
        self, what: str, step_id: str | None, arguments: Sequence[Any], act: Callable[[], Any], between: bool
    ) -> None:
        if self._execution is None:
            return
        run = self._execution.run
        self._signals += 1
        if not between:
            run.receipts.arrived()
        lost = undecodable(arguments, f"undecodable-signal-{self._signals}")
        try:
            if lost is not None:
                raise Refused(lost.message, lost.code)
            _require_open(run)
            act()
        except Refused as refusal:
            known = step_id if step_id in run.steps else None
            text = f"REFUSED:{refusal.code} {what}: {refusal.message}"
            if not between:
                run.receipts.refuse(refusal.code, refusal.message)
            run.note(LogKind.REFUSED, text, workflow.now(), known, code=refusal.code, subject=what)

    @workflow.signal(description='Approve a step: {"stepId": "...", "by": "...", "comment": "...", "args": {}}')
    def approve(self, *arguments: Any) -> None:
        """The step may make the call that it asks for, and no other
        (docs/contract.md#29-what-a-decision-is-about). `args` replace the step's arguments, are validated, and make a
        new version of the plan; `digest` refuses the decision when the call is another one, `version` when the plan has
        changed since; `remember` approves further calls of this tool in this run, with the same network access, queue
        and workspace, except for steps that set `requiresApproval`; of a step inside a loop, the calls of that step for
        all items; `override`, with a `comment`, approves alone where the operator's policy lets the sender. A pattern,
        as in `resize[*]`, is about every step that fits it and awaits approval now, or about those with one of these
        `digests`.
        """
        self._try(
            "approve", step_of(arguments), arguments, lambda: self._signal_decision("approve", Approve, arguments)
        )

    @workflow.signal(description='Deny a step, which is then skipped: {"stepId": "...", "by": "...", "comment": "..."}')
    def deny(self, *arguments: Any) -> None:
        """The step is skipped: "User denied approval"; its dependents are permanently blocked."""
        self._try("deny", step_of(arguments), arguments, lambda: self._signal_decision("deny", Deny, arguments))

    @workflow.signal(description="Pause the plan: running steps finish, no further step starts until unpause.")
    def pause(self, *arguments: Any) -> None:
        """No further step starts, and an agent sends no further LLM request; the agents and child plans of the steps
        are paused with it (`above`).
        """
        self._signal_control("pause", arguments)

    @workflow.signal(description="Unpause the plan: steps start again.")
    def unpause(self, *arguments: Any) -> None:
        """Steps start again, and what was paused with the plan."""
        self._signal_control("unpause", arguments)

    @workflow.signal(description="Stop at the next safe point; `plan resume` continues from there.")
    def interrupt(self, *arguments: Any) -> None:
        """Running steps may end, nothing starts, the plan ends as cancelled; `plan resume` continues it."""
        self._signal_control("interrupt", arguments)

    @workflow.signal(description="End a plan at once that rolls back or runs its `finally`, after a cancellation.")
    def abandon(self, *arguments: Any) -> None:
        """Of a plan that rolls back or runs its `finally`: ends that at once; sent by the second `plan cancel`
        (docs/rollback.md#cancelling).
        """
        self._signal_control("abandon", arguments)

    @workflow.signal(description="End the review and start the plan.")
    def begin(self, *arguments: Any) -> None:
        """Ends the review; `version` refuses to begin another plan than the one that was reviewed."""
        self._signal_control("begin", arguments)

    @workflow.signal(description="Forget file stamps and the agents.md shown; both come in again with the next reads.")
    def clear_session(self, *arguments: Any) -> None:
        """Forgets file stamps and the agents.md shown: later edits are of files never seen, and agents.md come in again
        with the next reads.
        """
        self._signal_control("clear_session", arguments)

    @workflow.signal(description='Report files that others have changed: {"paths": ["src/main.py"]}')
    def files_changed(self, *arguments: Any) -> None:
        """These files or directories were changed by others: the run must read them again before it edits them."""

        def mark() -> None:
            message = read(FilesChanged, arguments)
            file_tracking.changed(self._started().run, message.paths, message.by, workflow.now())

        self._try("files_changed", None, arguments, mark)

    @workflow.signal(dynamic=True)
    def unknown(self, name: str, _: Sequence[RawValue]) -> None:
        """An unknown signal becomes an entry in the log."""

        def refuse() -> None:
            raise Refused(f"there is no signal '{name[:100]}'", "UNKNOWN_SIGNAL")

        self._try("signal", None, (), refuse)

    @workflow.update(description='Approve or deny a step; returns the decision: {"stepId": "...", "approved": true}')
    async def decide(self, *arguments: Any) -> dict[str, Any]:
        """As `approve` and `deny`. Returns the decision as recorded; of a pattern `{stepId, approved, count, stepIds,
        refused}`.
        """
        require_stored(arguments)
        await self._in_turn()
        run = self._started().run
        with refusing(run):  # for what has changed while it waited
            _require_open(run)
            message = self._admitted().admit(read(Decide, arguments), "decide", arguments)
            return patterns.decide(run, message, workflow.now(), "update", self._rules)

    @decide.validator
    def _may_decide(self, *arguments: Any) -> None:
        try:
            run = self._started().run
            _require_open(run)
            message = read(Decide, arguments)
            self._admitted().check("decide", arguments)
            patterns.check(run, message, workflow.now(), self._rules)
        except PlanError as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=True) from error

    @workflow.update(
        description='Begin, pause, unpause, interrupt, abandon, clear_session: {"action": "pause", "by": "..."}'
    )
    async def control(self, *arguments: Any) -> dict[str, Any]:
        """As the signals of these names: `begin`, `pause`, `unpause`, `interrupt`, `abandon`, `clear_session`. Returns
        `{action, text, status}`.
        """
        require_stored(arguments)
        await self._in_turn()
        run = self._started().run
        with refusing(run):  # for what has changed while it waited
            message = read(ControlPlan, arguments)
            if message.action in _SIGNED:
                message = self._admitted().admit(message, "control", arguments)
            text = self._control(message.action, message)
            return {"action": message.action, "text": text, "status": run.status.value}

    @control.validator
    def _may_control(self, *arguments: Any) -> None:
        run: Run | None = None
        try:
            run = self._started().run
            message = read(ControlPlan, arguments)
            if message.action in _SIGNED:
                self._admitted().check("control", arguments)
            check_control(run, message.action, message.version, above=message.above)
        except PlanError as error:
            raise refusal(error, run) from error

    @workflow.query(description='The plan with the status and result of every step; abridged: {"brief": true}')
    def plan(self, *arguments: Any) -> dict[str, Any]:
        """The plan with the status and result of every step, `pending`, `log`, `counts`, `step_tool_history`,
        `step_files`, and `step_files_shared` where it is not known which step wrote a file; with `{"brief": true}` only
        what a list of steps shows; with `{"brief": true, "since": SEQ, "version": N}`, for a client that has version N
        of the plan as of event SEQ, only the steps that may differ and the later log, marked with `since`, or, if that
        is not enough, all of it without the mark.
        """
        return self._view(arguments)

    @workflow.query(description='Progress events numbered above `since`: {"since": 0}')
    def events(self, *arguments: Any) -> list[dict[str, Any]]:
        """The events (docs/contract.md#events) after that number, at most 1,000."""
        return queries.events(self._started().run, arguments)

    @workflow.query(description='File stamps as the run last saw them: {"paths": ["src/main.py"]}; without paths all')
    def stamps(self, *arguments: Any) -> dict[str, Any]:
        """Hash and size of the files the run read or wrote, by path."""
        return queries.stamps(self._started().run, arguments)

    @workflow.query(description='Attempts of the steps and where their output is: {"stepId": "step_1"}; without, all')
    def logs(self, *arguments: Any) -> dict[str, Any]:
        """Every attempt of a step, or of as many steps as fit from number `since` on (`next`: the number to ask for
        next): when, error, wait, and where its output is stored.
        """
        return queries.logs(self._started().run, arguments)

    @workflow.query(description='What a decision on a step is about, with its digest: {"stepId": "step_1"}')
    def call(self, *arguments: Any) -> dict[str, Any]:
        """What a decision on the step would be about now: tool, arguments, queue, workspace, network access, their
        `digest`, and `isWhole: false` where values are not known yet; empty if there is no such step.
        """
        return queries.call(self._started().run, arguments)

    @workflow.query(description='The steps inside a block or loop, in pages: {"stepId": "resize", "since": 0}')
    def inside(self, *arguments: Any) -> dict[str, Any]:
        """The step, and in `steps` those inside it with their values, at most 500 from number `since` on (`next`: the
        number to ask for next); of a pattern, those that fit it; `direct`: only the items.
        """
        return queries.inside(self._started().run, arguments)

    @workflow.query(description='The plan as text; a big plan abridged to its active steps: {"limit": 100}')
    def text(self, *arguments: Any) -> str:
        """The plan as text: every step with mark, notes, tools and files; of a big plan the steps that are moving;
        `detailed`: as `plan show` prints it.
        """
        return self._text(arguments)

    @workflow.query(description="Summary so far: counts, duration, files written, failed steps.")
    def summary(self, *_: Any) -> dict[str, Any]:
        """Counts, duration, files written, what failed, was denied, skipped or blocked, and what awaits a decision; the
        final one when the plan has ended.
        """
        return summary_of(self._started().run).to_json()

    @workflow.query(description="What became of the signals of this run of the workflow: their number, and refusals.")
    def receipts(self, *_: Any) -> dict[str, Any]:
        """What became of the signals that this run of the workflow has handled: their number, and those that were
        refused, with codes; for `plan audit`.
        """
        return self._started().run.receipts.model_dump(mode="json")

    @workflow.query(description="The whole Run as JSON, from which another run can resume.")
    def state(self, *_: Any) -> dict[str, Any]:
        """The whole run, for another run to continue from."""
        return self._state()

    def _signal_decision(self, name: str, kind: type[Approve | Deny], arguments: Sequence[Any]) -> None:
        message, run = read(kind, arguments), self._started().run
        message = self._admitted().admit(message, "decide", arguments, name)
        decision = Decide(approved=name == "approve", **dict(message))
        patterns.decide(run, decision, workflow.now(), "signal", self._rules)

    def _signal_control(self, action: Action, arguments: Sequence[Any]) -> None:
        def act() -> None:
            message = read(Control, arguments, optional=True)
            if action in _SIGNED:
                message = self._admitted().admit(message, "control", arguments, action)
            self._control(action, message)

        self._try(action, None, arguments, act)

    def _control(self, action: Action, message: Control) -> str:
        """Carry out the action. Returns its log text. Raises Refused when the plan's status does not allow it."""
        execution, now = self._started(), workflow.now()
        check_control(execution.run, action, message.version, above=message.above)
        if action not in _SIGNED:
            message = message.model_copy(update={"verified": False, "signature": None})  # anybody can have sent it
        text = _LOG_TEXTS[action] + (" with its plan" if message.above else "")
        text += f" by {who_of(execution.run, message)}" if message.by else ""
        if action == "interrupt":
            execution.interrupt(text)
        elif action == "abandon":
            completion.abandon(execution, text)
        elif action == "pause":
            if execution.schedule.pause(now, text, held=message.above):
                execution.in_steps.pause("pause", message)
        elif action == "unpause":
            if execution.schedule.unpause(now, text, held=message.above):
                execution.in_steps.pause("unpause", message)
        elif action == "clear_session":
            self._clear_session(text)
        else:
            execution.schedule.begin(now)
            execution.run.note(LogKind.BEGUN, text, now)
            if not execution.run.held:  # it may have been paused before its review
                execution.in_steps.pause("unpause", message)
        return text

    def _clear_session(self, text: str) -> None:
        file_tracking.clear(self._started().run, text, workflow.now())


def _require_open(run: Run) -> None:
    """Raise Refused if the plan has ended."""
    if run.status in ENDED:
        raise Refused(f"the plan has ended ({run.status})", "PLAN_CLOSED")
