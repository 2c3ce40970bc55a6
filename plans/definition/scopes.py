"""Where the steps of a plan stand in each other: bodies of blocks, and the names that hold inside them (DESIGN 2.8).

A step has up to four kinds of bodies: its `steps` or the cases of its `switch`, `catch`, `finally` and `undo`. Inside
them a name means, from the inside out: a variable of the construct, a step of the same body, a step beside the
construct. Only variables and siblings are known here; what is outside is left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any, NamedTuple, TypeVar

from plansurvive.plans.model import Case, Catch, Plan, Problem, Step, Undo

Owner = TypeVar("Owner", Case, Catch, Undo)

INDEX, KEY, ROUND, ERROR, STATUS, VALUE = "index", "key", "round", "error", "status", "value"
"""Variables that constructs define, besides the item of a loop."""
CATCH, FINALLY, UNDO = "catch", "finally", "undo"
"""The parts that these bodies add to the path of a step: `pay.undo.refund`."""
MAX_NESTING = 16
"""Levels of steps inside steps. A plan file may have 64 levels of JSON, and each takes two to four of them."""


class CallOf(NamedTuple):
    """A call that a step makes: its own, or that of its `undo`."""

    path: str
    """Path of the step."""
    own: str
    """Its id: a name that its arguments may not use; empty: they may."""
    tool: str
    args: dict[str, Any]
    variables: Set[str]
    """Names that have a meaning in these arguments only."""
    start: str = ""
    """What comes before its fields: `undo.`, or nothing."""

    def problem(self, code: str, field: str, message: str, name: str = "") -> Problem:
        """A problem of the call."""
        return Problem(code=code, step_id=self.path, field=f"{self.start}{field}", message=message, name=name)


class Body(NamedTuple):
    """Steps inside a step, or the `finally` of a plan."""

    part: str
    """What it adds to the path of its steps: nothing, `catch`, `finally` or `undo`."""
    field: str
    """The field it is written in, as in `catch.0.steps`."""
    steps: list[Step]
    variables: frozenset[str]
    """Names that the construct defines inside it."""
    beside: frozenset[str]
    """Ids of steps of the construct's main body, whose values it may use as well: of `catch` and `finally`, unless
    the body is repeated."""

    def names(self) -> set[str]:
        """Every name that means something inside the body only."""
        return {*self.variables, *self.beside, *(step.id for step in self.steps)}


def item_names(step: Step) -> frozenset[str]:
    """The variables of a step's `forEach`."""
    return frozenset() if step.for_each is None else frozenset((step.for_each.as_, INDEX, KEY))


def call_names(step: Step) -> frozenset[str]:
    """The variables that a step's own arguments may use."""
    names = item_names(step)
    return names if step.repeat is None else names | {ROUND}


def undo_names(step: Step) -> frozenset[str]:
    """The variables that the arguments of a step's `undo` may use."""
    return item_names(step) | {VALUE}


def inner_ids(step: Step) -> frozenset[str]:
    """Ids of the steps of a block, or of all cases of a switch."""
    found = [step.steps or [], *(case.steps for case in step.switch or [])]
    return frozenset(each.id for steps in found for each in steps)


def _is_plain(step: Step) -> bool:
    """Whether the step is a call with nothing inside it, as most are."""
    return step.steps is None and not (step.switch or step.catch or step.finally_ is not None or step.undo is not None)


def bodies(step: Step) -> Iterator[Body]:
    """The bodies of a step, in the order in which they are written."""
    if _is_plain(step):
        return
    items, calls = item_names(step), call_names(step)
    if step.steps is not None:
        yield Body("", "steps", step.steps, calls, frozenset())
    for number, case in enumerate(step.switch or []):
        yield Body("", f"switch.{number}.steps", case.steps, calls, frozenset())
    inner = inner_ids(step) if (step.catch or step.finally_) and step.repeat is None else frozenset[str]()
    for number, handler in enumerate(step.catch or []):
        yield Body(CATCH, f"catch.{number}.steps", handler.steps, items | {ERROR}, inner)
    if step.finally_ is not None:
        yield Body(FINALLY, "finally", step.finally_, items | {STATUS}, inner)
    if step.undo is not None and step.undo.steps is not None:
        yield Body(UNDO, "undo.steps", step.undo.steps, items | {VALUE}, frozenset())


def plan_bodies(plan: Plan) -> Iterator[Body]:
    """The steps of a plan, and its `finally`."""
    yield Body("", "steps", plan.steps, frozenset(), frozenset())
    if plan.finally_ is not None:
        yield Body(FINALLY, "finally", plan.finally_, frozenset((STATUS,)), frozenset(step.id for step in plan.steps))


def walk(plan: Plan) -> Iterator[tuple[str, Step]]:
    """Every step of a plan with its path, in reading order, those inside others included: `resize.catch.notify`."""
    for body in plan_bodies(plan):
        before = path_in(body, "")
        for step in body.steps:
            if _is_plain(step):  # a generator for each would cost more than all else here
                yield before + step.id, step
            else:
                yield from walk_step(step, before)


def walk_step(step: Step, before: str = "") -> Iterator[tuple[str, Step]]:
    """A step and every step inside it, with their paths; `before` is what comes before its id."""
    path = f"{before}{step.id}"
    yield path, step
    for body in bodies(step):
        within = path_in(body, path)
        for inner in body.steps:
            if _is_plain(inner):
                yield within + inner.id, inner
            else:
                yield from walk_step(inner, within)


def queues(steps: Iterable[Step]) -> list[str]:
    """The task queues that these steps, and those inside them, are bound to."""
    return list(dict.fromkeys(each.queue for step in steps for _, each in walk_step(step) if each.queue))


def with_bodies(step: Step, change: Callable[[str, Step], Step]) -> Step:
    """The step with every step directly inside it changed; `change` is given the part of the body and the step."""
    new: dict[str, Any] = {}
    if step.steps is not None:
        new["steps"] = [change("", each) for each in step.steps]
    if step.switch is not None:
        new["switch"] = [_changed(case, "", change) for case in step.switch]
    if step.catch is not None:
        new["catch"] = [_changed(handler, CATCH, change) for handler in step.catch]
    if step.finally_ is not None:
        new["finally_"] = [change(FINALLY, each) for each in step.finally_]
    if step.undo is not None and step.undo.steps is not None:
        new["undo"] = _changed(step.undo, UNDO, change)
    return step.model_copy(update=new) if new else step


def _changed(owner: Owner, part: str, change: Callable[[str, Step], Step]) -> Owner:
    return owner.model_copy(update={"steps": [change(part, each) for each in owner.steps or []]})


def outermost(plan: Plan) -> list[Step]:
    """The steps that are not inside another one, those of `finally` included."""
    return [*plan.steps, *(plan.finally_ or [])]


def path_in(body: Body, owner: str) -> str:
    """What comes before the ids of a body's steps in their paths."""
    within = f"{owner}." if owner else ""
    return f"{within}{body.part}." if body.part else within
