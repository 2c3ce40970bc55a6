"""Goes through a plan as its workflow would, with the same state machine, without calling a tool.

A step that would take an earlier result has its value from then on. The value of one that would run is not known, so
of a step that uses it nothing more is known than that it depends on it. Approvals count as given. Child plans are gone
through as well, of a repetition the first round, and what closes the plan.

A step whose tool would be called has no value, and what uses it is reported as depending on it. Rejected: calling the
tools that only read (slow, or they reach other systems), and the values of the last run (a forecast that looks exact
and is wrong where it matters).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from plansurvive.features.forecast.model import Below, Foreseen, ForeseenChange, ForeseenStep, Outlook, Taken
from plansurvive.plans.errors import BadExpression, PlanError
from plansurvive.plans.execution.closing import advance
from plansurvive.plans.execution.next_action import Begin, Call, Fail, Open, Skip, Sleep, next_action
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.expressions.conditions import roots_of
from plansurvive.plans.expressions.items import roots_of_items
from plansurvive.plans.expressions.references import find
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.flow.outline import Node, when_of_whole
from plansurvive.plans.flow.progress import Further, Settle
from plansurvive.plans.model import Step
from plansurvive.plans.model.opaque import scanned
from plansurvive.plans.run import Result, Run, Status
from plansurvive.plans.run.feature import NO_RULES, RuleSet
from plansurvive.plans.step_state import SKIPPED, Outcome

MAX_STEPS = 5_000
"""Steps that are looked at, those inside loops included."""
_ITEMS = 1_000_000
"""Items of loops at once: all of them."""


class Around(Protocol):
    """What can be found out about a call without making it."""

    def earlier(self, run: Run, step_id: str, step: Step, args: Mapping[str, Any]) -> Taken | str:
        """The earlier result that the call would take; else why there is none, empty if none is asked for."""

    def change(self, step_id: str, step: Step, args: Mapping[str, Any]) -> ForeseenChange | None:
        """What the call would do to the file it names; None if it names none, or it is not known."""

    def below(self, run: Run, step: Step, args: Mapping[str, Any], now: datetime, rules: RuleSet) -> Below | None:
        """The plan that the step would run; None if it runs none. Raises PlanError."""

    def at(self, workspace: str) -> Around:
        """The same for a child plan that works in another directory."""


@dataclass
class Walk:
    """One way through a plan. `run`: a new one, with the facts about its tools."""

    run: Run
    around: Around
    moment: datetime
    rules: RuleSet = NO_RULES
    """Of the features, for what child plans are started with."""
    prefix: str = ""
    """Of the ids of its steps: a child plan's begin as its parent names them, `deploy/`."""
    limit: int = MAX_STEPS
    """Steps that are looked at."""
    before: tuple[str, ...] = ()
    """Of a child plan: steps of those above that would run before it and may change files."""
    found: dict[str, ForeseenStep] = field(default_factory=dict)
    after: dict[str, list[str]] = field(default_factory=dict)
    """By step, what it waits for."""
    within: dict[str, str] = field(default_factory=dict)
    """By step, the block, loop or plan step that it is in."""
    plans: dict[str, Run] = field(default_factory=dict)
    """The Runs of this plan and all below it, by the prefix of their steps' ids."""
    queues: dict[str, None] = field(default_factory=dict)
    """The queues that steps are bound to."""
    more: int = 0
    """Steps that were not looked at."""
    unknown: set[str] = field(default_factory=set)
    """Its own steps whose value is not known."""
    _writers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By own step, those before it, and itself, that would run and may change files."""

    def steps(self) -> list[ForeseenStep]:
        """All steps, each after what it waits for, and after the block, loop or plan step that it is in."""
        self._schedule = schedule = Schedule(self.run)
        self.plans[self.prefix] = self.run
        schedule.begin(self.moment)
        self._go_on()
        while len(self.found) < self.limit and advance(schedule, self.moment):
            self._go_on()
        for name, state in self.run.steps.items():
            if self._full(name) not in self.found and len(self.found) < self.limit:
                needs = schedule.open_needs(name)
                why = state.reason or (f"'{needs[0]}' is not done" if needs else "")
                self._tell(name, "blocked", why=why)
        more = sum(self._full(name) not in self.found for name in self.run.steps)
        self.more += more
        if schedule.idle and not more:
            schedule.end(self.moment)
        return list(self.found.values())

    def changing(self) -> list[str]:
        """The steps that would run and may change files."""
        return list(dict.fromkeys(writer for found in self._writers.values() for writer in found))

    def _go_on(self) -> None:
        schedule = self._schedule
        while True:
            if schedule.ready:
                self._look_at(next(iter(schedule.ready)))
            elif (name := schedule.next_ended()) is not None:
                self._go_further(name)
            elif len(self.found) >= self.limit or not schedule.open_next(_ITEMS, self.moment):
                break

    def _look_at(self, name: str) -> None:
        schedule, node = self._schedule, self._schedule.outline.nodes[name]
        step, needs = node.step, schedule.needs(name)
        self.after[self._full(name)] = [self._full(each) for each in needs]
        if node.parent:
            self.within[self._full(name)] = self._full(node.parent)
        earlier = [*needs, *([node.parent] if node.parent else [])]
        before = dict.fromkeys([*self.before, *(writer for each in earlier for writer in self._writers.get(each, ()))])
        self._writers[name] = tuple(before)
        if (queue := self.run.queue_of(step)) is not None:
            self.queues[queue] = None
        if hidden := self._hidden(node):
            self._depends(name, [self._full(each) for each in hidden])
        elif node.kind == "call" and step.tool not in self.run.facts.tools:
            self._runs(name, why="this machine does not have its tool, so nothing more is known", is_known=False)
        else:
            self._act(name, step, list(before))

    def _act(self, name: str, step: Step, before: list[str]) -> None:
        match next_action(self._schedule, name):
            case Skip(reason, opens, code):
                self._tell(name, "skip", why=reason)
                failed = Result(ok=False, error=reason, code=code or SKIPPED, timestamp=self.moment)
                self._schedule.settle(name, Outcome(Status.SKIPPED, failed, opens), self.moment)
            case Fail(code, message):
                self._tell(name, "fail", why=f"{code}: {message}")
                self._fail(name, code, message)
            case Open(opened):
                self._open(name, opened)
            case Call(filled, _) if not filled.deferred:
                self._call(name, step, filled.args, before)
            case Sleep(seconds):
                self._runs(name, seconds=seconds)
            case Begin(args):
                self._begin(name, step, args, before)
            case _:
                self._runs(name, is_known=False)

    def _open(self, name: str, opened: Opened) -> None:
        node = self._schedule.outline.nodes[name]
        rule = node.step.repeat if node.kind == "repeat" else None
        self._tell(
            name, "run", items=None if opened.items is None else len(opened.items), rounds=rule and rule.limit,
            why=f"in rounds, until {rule.until}; the first one is" if rule else "",
        )  # fmt: skip
        self._schedule.start(name, self.moment)
        self._schedule.open(name, opened, self.moment)

    def _call(self, name: str, step: Step, args: dict[str, Any], before: list[str]) -> None:
        earlier = self.around.earlier(self.run, name, step, args)
        if isinstance(earlier, Taken) and before:
            why = f"it takes the result of {earlier.place} if the files it reads are then as they are now"
            self._depends(name, before, why)
        elif isinstance(earlier, Taken):
            self._tell(name, "cached", taken_from=earlier.place)
            self._complete(name, earlier.value, is_known=earlier.is_known)
        else:
            self._runs(name, why=earlier, change=self.around.change(name, step, args), is_known=False)

    def _begin(self, name: str, step: Step, args: Mapping[str, Any], before: list[str]) -> None:
        """Go through the plan that a step runs, if it is one that runs a plan."""
        try:
            plan = self.around.below(self.run, step, args, self.moment, self.rules)
        except PlanError as error:
            why = f"{error.code}: {error.message}"
            if before:  # they may write its file
                self._depends(name, before, why)
            else:
                self._tell(name, "fail", why=why)
                self._fail(name, error.code, error.message)
            return
        if plan is None:
            self._runs(name, why=self.run.language.tool(step.tool).unforeseen, is_known=False)
            return
        child, full = plan.run, self._full(name)
        limit = self.limit - len(self.found) - 1
        around = self.around.at(child.facts.workspace)
        below = Walk(child, around, self.moment, self.rules, f"{full}/", limit, tuple(before))
        self._tell(name, "run")
        below.steps()
        inside = {each: full for each in below.found if each not in below.within}
        self.found |= below.found
        self.after |= below.after
        self.within |= below.within | inside
        self.plans |= below.plans
        self.queues |= below.queues
        self.more += below.more
        self._writers[name] = tuple(dict.fromkeys([*before, *below.changing()]))
        ended = Foreseen() if below.more else plan.ended(below.unknown)
        if ended.code and child.batch is None:
            self.found[full] = self.found[full].model_copy(update={"why": f"fails: {ended.error}"})
            self._schedule.start(name, self.moment)
            self._fail(name, ended.code, ended.error)
        else:
            self._complete(name, ended.value, is_known=ended.is_known)

    def _runs(self, name: str, *, is_known: bool = True, **fields: Any) -> None:
        self._tell(name, "run", **fields)
        self._changes_files(name)
        self._complete(name, None, is_known=is_known)

    def _depends(self, name: str, on: Iterable[str], why: str = "") -> None:
        self._tell(name, "depends", depends_on=list(on), why=why)
        self._changes_files(name)
        self._complete(name, None, is_known=False)

    def _fail(self, name: str, code: str, message: str) -> None:
        failed = Result(ok=False, error=message, code=code, timestamp=self.moment)
        self._schedule.settle(name, Outcome(Status.FAILED, failed), self.moment)

    def _changes_files(self, name: str) -> None:
        """Note that a step which may run may change files."""
        spec = self.run.facts.tools.get(self._schedule.step(name).tool)
        if spec is None or spec.effect != "pure":
            self._writers[name] = (*self._writers[name], self._full(name))

    def _complete(self, name: str, value: Any, *, is_known: bool) -> None:
        if not is_known:
            self.unknown.add(name)
        self._schedule.start(name, self.moment)
        self._schedule.settle(name, self._completed(value), self.moment)

    def _completed(self, value: Any) -> Outcome:
        return Outcome(Status.COMPLETED, Result(ok=True, value=value, timestamp=self.moment))

    def _go_further(self, name: str) -> None:
        """Begin what follows in a block or a loop in which everything has ended, or settle it."""
        node = self._schedule.outline.nodes[name]
        is_hidden = any(each in self.unknown for each in node.children)
        done = all(self.run.steps[each].status is Status.COMPLETED for each in node.children)
        if node.kind == "repeat" and is_hidden and done:  # whether another round follows is not known
            move: Settle | Further = Settle(self._completed(None))
        else:
            move = self._schedule.next_move(name, self.moment)
        if not isinstance(move, Settle):
            self._schedule.open(name, move.opened, self.moment)
            return
        if is_hidden:
            self.unknown.add(name)
        inside = [writer for each in [name, *node.children] for writer in self._writers.get(each, ())]
        self._writers[name] = tuple(dict.fromkeys(inside))
        self._schedule.settle(name, move.outcome, self.moment)

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
            elif not step.is_block and node.kind != "repeat":
                names += [each.root for each in find(scanned(step.tool, step.args))]
        except BadExpression:
            return []  # the step fails with it
        found = (self._schedule.outline.find(node.id, name) for name in names)
        return list(
            dict.fromkeys(each.step_id for each in found if each and each.step_id in self.unknown if each.step_id)
        )

    def _tell(self, name: str, outlook: Outlook, **fields: Any) -> None:
        node, full = self._schedule.outline.nodes[name], self._full(name)
        tool = node.step.tool if node.kind == "call" else ""
        self.found[full] = ForeseenStep(step_id=full, tool=tool or "", outlook=outlook, **fields)

    def _full(self, name: str) -> str:
        return self.prefix + name
