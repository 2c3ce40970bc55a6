"""Goes through a plan as its workflow would, with the same state machine, without calling a tool.

A step that would take an earlier result has its value from then on. The value of one that would run is not known, so
of a step that uses it nothing more is known than that it depends on it. Approvals count as given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from plans.caching.orders import asked, order_of, refusal
from plans.errors import BadExpression
from plans.execution.next_action import Call, Delegate, Fail, Open, Skip, Sleep, Wait, Waits, next_action
from plans.execution.schedule import Schedule
from plans.expressions.conditions import roots_of
from plans.expressions.items import roots_of_items
from plans.expressions.opaque import scanned
from plans.expressions.references import find
from plans.flow.outline import Node, when_of_whole
from plans.flow.progress import Settle
from plans.forecast.models import ForeseenChange, ForeseenStep, Outlook
from plans.model import Step
from plans.model.caching import CacheOrder
from plans.run import Result, Run, Status
from plans.step_state import SKIPPED, Outcome

MAX_STEPS = 5_000
"""Steps that are looked at, those inside loops included."""
_ITEMS = 1_000_000
"""Items of loops at once: all of them."""


class Taken(NamedTuple):
    """An earlier result that a call would take. `is_known`: its value is here, and not stored outside."""

    place: str
    value: Any = None
    is_known: bool = True


class Around(Protocol):
    """What can be found out about a call without making it."""

    def earlier(self, step_id: str, step: Step, args: Mapping[str, Any], order: CacheOrder) -> Taken | str:
        """The earlier result that the call would take; else why there is none."""

    def change(self, step_id: str, step: Step, args: Mapping[str, Any]) -> ForeseenChange | None:
        """What the call would do to the file it names; None if it names none, or it is not known."""


@dataclass
class Walk:
    """One way through a plan. `run`: a new one, with the facts about its tools."""

    run: Run
    around: Around
    moment: datetime
    found: dict[str, ForeseenStep] = field(default_factory=dict)
    after: dict[str, list[str]] = field(default_factory=dict)
    """By step, what it waits for."""
    more: int = 0
    _unknown: set[str] = field(default_factory=set)
    """Steps whose value is not known."""
    _writers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By step, those before it, and itself, that would run and may change files."""

    def steps(self) -> list[ForeseenStep]:
        """All steps, each after what it waits for."""
        self._schedule = schedule = Schedule(self.run)
        schedule.begin(self.moment)
        while True:
            if schedule.ready:
                self._look_at(next(iter(schedule.ready)))
            elif (name := schedule.next_ended()) is not None:
                self._go_further(name)
            elif len(self.found) >= MAX_STEPS or not schedule.open_next(_ITEMS, self.moment):
                break
        for name, state in self.run.steps.items():
            if name not in self.found and len(self.found) < MAX_STEPS:
                needs = schedule.open_needs(name)
                why = state.reason or (f"'{needs[0]}' is not done" if needs else "")
                self.found[name] = self._step(name, "blocked", why=why)
        self.more = sum(name not in self.found for name in self.run.steps)
        return list(self.found.values())

    def _look_at(self, name: str) -> None:
        schedule, node = self._schedule, self._schedule.outline.nodes[name]
        step, needs = node.step, [*schedule.needs(name), *([node.parent] if node.parent else [])]
        self.after[name] = needs
        before = {writer: None for each in needs for writer in self._writers.get(each, ())}
        self._writers[name] = tuple(before)
        if step.repeat is not None:
            self._runs(name, why=f"in rounds, until {step.repeat.until}", is_known=False)
        elif hidden := self._hidden(node):
            self._depends(name, hidden)
        elif node.kind == "call" and step.tool not in self.run.facts.tools:
            self._runs(name, why="this machine does not have its tool, so nothing more is known", is_known=False)
        else:
            self._act(name, step, list(before))

    def _act(self, name: str, step: Step, before: list[str]) -> None:
        match next_action(self._schedule, name):
            case Skip(reason, opens, code):
                self.found[name] = self._step(name, "skip", why=reason)
                failed = Result(ok=False, error=reason, code=code or SKIPPED, timestamp=self.moment)
                self._schedule.settle(name, Outcome(Status.SKIPPED, failed, opens), self.moment)
            case Fail(code, message):
                self.found[name] = self._step(name, "fail", why=f"{code}: {message}")
                failed = Result(ok=False, error=message, code=code, timestamp=self.moment)
                self._schedule.settle(name, Outcome(Status.FAILED, failed), self.moment)
            case Open(opened):
                self.found[name] = self._step(name, "run", items=None if opened.items is None else len(opened.items))
                self._schedule.start(name, self.moment)
                self._schedule.open(name, opened, self.moment)
            case Call(filled, _) if not filled.deferred:
                self._call(name, step, filled.args, before)
            case Sleep(seconds):
                self._runs(name, seconds=seconds)
            case Delegate():
                self._runs(
                    name, why="it chooses its calls while it runs" if step.tool == "agent" else "", is_known=False
                )
            case Waits() as waits:
                self._runs(name, why="waits for an event" if isinstance(waits, Wait) else "", is_known=False)
            case _:
                self._runs(name, is_known=False)

    def _call(self, name: str, step: Step, args: dict[str, Any], before: list[str]) -> None:
        spec = self.run.facts.tools[step.tool]
        order = order_of(self.run, step, spec)
        earlier: Taken | str = self.around.earlier(name, step, args, order) if order is not None else ""
        if order is None and asked(self.run, step, spec):
            earlier = refusal(self.run, step, spec)
        if isinstance(earlier, Taken) and before:
            why = f"it takes the result of {earlier.place} if the files it reads are then as they are now"
            self._depends(name, before, why)
        elif isinstance(earlier, Taken):
            self.found[name] = self._step(name, "cached", taken_from=earlier.place)
            self._complete(name, earlier.value, is_known=earlier.is_known)
        else:
            self._runs(name, why=earlier, change=self.around.change(name, step, args), is_known=False)

    def _runs(self, name: str, *, is_known: bool = True, **fields: Any) -> None:
        self.found[name] = self._step(name, "run", **fields)
        self._changes_files(name)
        self._complete(name, None, is_known=is_known)

    def _depends(self, name: str, on: Iterable[str], why: str = "") -> None:
        self.found[name] = self._step(name, "depends", depends_on=list(on), why=why)
        self._changes_files(name)
        self._complete(name, None, is_known=False)

    def _changes_files(self, name: str) -> None:
        """Note that a step which may run may change files."""
        spec = self.run.facts.tools.get(self._schedule.step(name).tool)
        if spec is None or (spec.effect != "pure" and not spec.durable) or spec.name in ("agent", "plan"):
            self._writers[name] = (*self._writers[name], name)

    def _complete(self, name: str, value: Any, *, is_known: bool) -> None:
        if not is_known:
            self._unknown.add(name)
        self._schedule.start(name, self.moment)
        self._schedule.settle(
            name, Outcome(Status.COMPLETED, Result(ok=True, value=value, timestamp=self.moment)), self.moment
        )

    def _go_further(self, name: str) -> None:
        """Begin what follows in a block or a loop in which everything has ended, or settle it."""
        match self._schedule.next_move(name, self.moment):
            case Settle(outcome):
                inside = self._schedule.outline.nodes[name].children
                if any(each in self._unknown for each in inside):
                    self._unknown.add(name)
                found = {writer: None for each in [name, *inside] for writer in self._writers.get(each, ())}
                self._writers[name] = tuple(found)
                self.after[name] = [*self.after[name], *inside]
                self._schedule.settle(name, outcome, self.moment)
            case further:
                self._schedule.open(name, further.opened, self.moment)

    def _hidden(self, node: Node) -> list[str]:
        """The steps whose values it uses and which are not known."""
        step = node.step
        condition = when_of_whole(step)
        try:
            names = list(roots_of(condition)) if condition is not None else []
            if step.for_each is not None:
                names += roots_of_items(step.for_each.items)
            elif step.switch is not None:
                names += [root for case in step.switch for root in roots_of(case.when)]
            elif not step.is_block:
                names += [each.root for each in find(scanned(step.tool, step.args))]
        except BadExpression:
            return []  # the step fails with it
        found = (self._schedule.outline.find(node.id, name) for name in names)
        return list(
            dict.fromkeys(each.step_id for each in found if each and each.step_id in self._unknown if each.step_id)
        )

    def _step(self, name: str, outlook: Outlook, **fields: Any) -> ForeseenStep:
        step = self._schedule.step(name)
        tool = "" if step.is_block or step.for_each is not None or step.switch is not None else step.tool
        return ForeseenStep(step_id=name, tool=tool or "", outlook=outlook, **fields)
