"""The steps of one Execution that ask a question or wait for an event. Both are ready and awaiting, and take no slot.

What must survive continue-as-new is in the Run: deadlines, questions and answers with the step, events in the part
`Waiting`. Which events a waiting step has looked at is not: after continue-as-new it looks at all of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from temporalio import workflow

from plansurvive.features.waiting import answers, events
from plansurvive.features.waiting.model import WAIT_FOR, Event, Waiting
from plansurvive.plans.definition.questions import ASK, on_timeout
from plansurvive.plans.execution.approvals import later
from plansurvive.plans.execution.asking import note_question, use_answer
from plansurvive.plans.execution.tool_history import note_call
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import Result, Status
from plansurvive.plans.step_state import Outcome
from plansurvive.plans.text.lists import some
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.in_steps import InSteps
from plansurvive.workflows.outcomes import failed, skipped


class WaitingSteps(InSteps):
    """What the waiting steps of a Run wait for, and what has come for them."""

    tools, awaits = (ASK, WAIT_FOR), ("answer", "event")

    def __init__(self, execution: Execution, changed: Callable[[str], None]) -> None:
        """`changed` is called with the name of an event that a step begins to wait for, or waits for no longer."""
        self._execution, self._schedule, self._run = execution, execution.schedule, execution.run
        self._changed = changed
        self._kept = self._run.part(Waiting)
        self._by_name: dict[str, dict[str, None]] = {}
        """Waiting steps by the name of their event; steps that wait no longer are taken out when they are met."""
        self._heard: dict[str, int] = {}
        """By waiting step, the number of the last event that it has looked at."""
        self._behind: dict[str, None] = {}
        """Steps with events to look at that were too much work for one workflow task."""
        self._due: dict[str, Event] = {}

    @property
    def has_news(self) -> bool:
        """Whether an event has come for a step since the last turn."""
        return bool(self._due)

    def start(self, step: Step, args: Mapping[str, Any]) -> None:
        """Ask a step's question, or wait for its event; complete the step if that has come already."""
        if step.tool == ASK:
            self._ask(step.id, dict(args))
        else:
            self._expect(step.id, dict(args))

    def _ask(self, step_id: str, args: dict[str, Any]) -> None:
        now = workflow.now()
        if answers.standing(self._run, step_id, args, now) is not None:
            return self._complete(step_id, args, use_answer(self._run, step_id))
        self._await(step_id, args, "answer")
        return note_question(self._run, step_id, args)

    def _expect(self, step_id: str, args: dict[str, Any]) -> None:
        event = self._first(step_id, args, since=0)
        if event is not None:
            events.note_received(self._run, step_id, event, workflow.now())
            return self._complete(step_id, args, event.data)
        self._await(step_id, args, "event")
        self._run.steps[step_id].asked = args
        return self._listen(step_id, args, heard=self._kept.number)

    def arrived(self, event: Event, below: Sequence[str]) -> list[str]:
        """Let the steps that wait look at an event that is kept now; returns those that it is for as far as known.

        `below`: the steps to whose child plans it is passed on.
        """
        names = [name for name in list(self._by_name.get(event.name, ())) if self._expects(name, event.name)]
        self._behind |= dict.fromkeys(names)
        before = set(self._due)
        self._look()
        found = [name for name in self._due if name not in before]
        self._note_arrived(event, names, found, below)
        return found

    def waits_for(self, name: str) -> bool:
        """Whether a step waits for events of this name."""
        return any(self._expects(step_id, name) for step_id in list(self._by_name.get(name, ())))

    def turn(self) -> None:
        """Complete the steps whose answer or event has come."""
        for name in [name for name in self._schedule.awaiting if self._is_answered(name)]:
            self._complete(name, self._run.steps[name].asked or {}, use_answer(self._run, name))
        self._look()
        due, self._due = self._due, {}
        for name, event in due.items():
            if name in self._schedule.expecting:
                events.note_received(self._run, name, event, workflow.now())
                self._complete(name, self._run.steps[name].asked or {}, event.data)
                self._changed(event.name)

    def expired(self, step_id: str) -> None:
        """Act on the time limit of a question or a wait that has passed."""
        state = self._run.steps[step_id]
        now, args = workflow.now(), state.asked or {}
        text = f"no {state.awaiting} within {args.get('timeout', 0):g} s"
        how = on_timeout(args) if state.awaiting == "answer" else "fail"
        code = answers.ANSWER_TIMEOUT if state.awaiting == "answer" else events.EVENT_TIMEOUT
        if state.awaiting == "event":
            self._changed(str(args.get("event")))
        more = "; its default is taken" if how == "default" else ""
        self._run.note(LogKind.EXPIRED, f"step '{step_id}': {text}{more}", now, step_id)
        if how == "default":
            answers.take_default(self._run, step_id, now)
            self._complete(step_id, args, use_answer(self._run, step_id))
            return
        self._schedule.answered(step_id)
        self._execution.conclude(step_id, skipped(text, now, code=code) if how == "skip" else failed(code, text, now))

    def resume(self) -> None:
        """After continue-as-new: let every waiting step look at the events again."""
        for name in self._schedule.expecting:
            self._listen(name, self._run.steps[name].asked or {}, heard=0)
            self._behind[name] = None

    def _await(self, step_id: str, args: Mapping[str, Any], what: Literal["answer", "event"]) -> None:
        now = workflow.now()
        deadline = later(now, args["timeout"]) if args.get("timeout") is not None else None
        self._schedule.ask(step_id, now, deadline, what)
        state = self._run.steps[step_id]
        state.waits[state.changes[-1].seq] = what
        if deadline:
            self._execution.timers.start(step_id, deadline, what)

    def _is_answered(self, step_id: str) -> bool:
        """Whether a step of the tool `ask` has its answer. One that another feature asks takes the answer itself."""
        state = self._run.steps[step_id]
        has_answer = state.awaiting == "answer" and state.answer is not None and not state.answer.used
        return has_answer and self._schedule.step(step_id).tool == ASK

    def _listen(self, step_id: str, args: Mapping[str, Any], heard: int) -> None:
        name = str(args.get("event"))
        self._by_name.setdefault(name, {})[step_id] = None
        self._heard[step_id] = heard
        self._changed(name)

    def _expects(self, step_id: str, name: str) -> bool:
        """Whether the step still waits for this event; one that does not is taken out."""
        state = self._run.steps.get(step_id)
        if step_id in self._schedule.expecting and state and (state.asked or {}).get("event") == name:
            return True
        self._heard.pop(step_id, None)
        self._by_name.get(name, {}).pop(step_id, None)
        return False

    def _look(self) -> None:
        """Let the steps look at the events that they have not looked at, until that is too much for this task."""
        while self._behind:
            name = next(iter(self._behind))
            if name in self._schedule.expecting and name not in self._due:
                args = self._run.steps[name].asked or {}
                event = self._first(name, args, self._heard.get(name, 0))
                if event is not None:
                    self._due[name] = event
                self._heard[name] = self._kept.number
            del self._behind[name]
            if not self._execution.rest.may_work(1):
                return

    def _first(self, step_id: str, args: Mapping[str, Any], since: int) -> Event | None:
        """The first event after number `since` that the step wants and has not received."""
        budget = 0
        found = None
        for event in self._kept.events:
            if event.number <= since or event.name != args.get("event"):
                continue
            spent = Budget(events.MATCH_UNITS)
            is_wanted = events.is_for(args, event, spent) and not events.has_received(self._run, step_id, event)
            budget += spent.spent
            if is_wanted:
                found = event
                break
        self._execution.rest.may_work(budget)
        return found

    def _note_arrived(self, event: Event, waiting: list[str], found: list[str], below: Sequence[str]) -> None:
        """Log an event that no step receives now, or that is passed on; of equal ones in a row, the first."""
        if found and not below:
            return
        waits = f"; it is not what {', '.join(waiting[:5])} waits for" if waiting else "; no step waits for it yet"
        waits = f"; it is passed on to the {child_plans(below)}" if below else waits
        text, by = f"event '{event.name}' arrived", f" of {event.who}" if event.by else ""
        last = self._run.log[-1] if self._run.log else None
        if last is None or (last.kind, last.subject) != (LogKind.EVENT, event.name):
            self._run.note(LogKind.EVENT, f"{text}{by}{waits}", workflow.now(), subject=event.name)

    def _complete(self, step_id: str, args: dict[str, Any], value: Any) -> None:
        state, now = self._run.steps[step_id], workflow.now()
        began = state.changes[-1].time if state.awaiting else now
        note_call(self._run, self._schedule.step(step_id), args)
        state.calls += 1
        result = Result(ok=True, value=value, duration=_milliseconds(began, now), timestamp=now)
        self._execution.timers.stop(step_id)
        self._schedule.settle(step_id, Outcome(Status.COMPLETED, result), now, waited=True)


def child_plans(steps: Sequence[str]) -> str:
    """The child plans of these steps, in words."""
    return f"child plan{'s' * (len(steps) != 1)} of {some(steps, 10)}"


def _milliseconds(began: datetime, now: datetime) -> float:
    return (now - began).total_seconds() * 1_000
