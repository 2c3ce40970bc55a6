"""What a name means at one place of a plan: a variable of a construct, a step that is visible there, or nothing.

Rejected: paths as references everywhere (`$work.read` inside `work`), which make a block depend on its own name and
cannot be moved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import cached_property

from plansurvive.plans.definition.foreign_names import item_instead
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.scopes import (
    ERROR,
    INDEX,
    KEY,
    ROUND,
    STATUS,
    UNDO,
    VALUE,
    Body,
    bodies,
    path_in,
    plan_bodies,
)
from plansurvive.plans.expressions.references import INPUTS
from plansurvive.plans.model import Plan, Step

_GIVEN_BY = {
    "item": "in a step with `forEach`",
    INDEX: "in a step with `forEach`",
    KEY: "in a step with `forEach`",
    ROUND: "in a step with `repeat`",
    ERROR: "in the steps of a `catch`",
    STATUS: "in the steps of a `finally`",
    VALUE: "in an `undo`",
}


class Meaning(Enum):
    """What a name stands for."""

    VARIABLE = auto()
    STEP = auto()
    ITSELF = auto()
    """The step that uses it, or a block that contains this step."""
    NOTHING = auto()


class Plain:
    """The names of a whole plan, for hints."""

    def __init__(self, plan: Plan | None = None) -> None:
        self._plan = plan

    @cached_property
    def inside(self) -> dict[str, str]:
        """Where the value of each step inside a block is found from outside, by its id: `resize[*].thumb`."""
        found: dict[str, str] = {}
        for body in plan_bodies(self._plan) if self._plan else ():
            for step in body.steps:
                for name, place in _inside(step, step.id):
                    found.setdefault(name, place)
        return found


class Scope:
    """The steps of one body, and the scope around it."""

    def __init__(
        self, steps: Sequence[Step], plain: Plain, *, body: Body | None = None, owner: Step | None = None,
        around: Scope | None = None, before: str = "",
    ) -> None:  # fmt: skip
        self.steps = {step.id: step for step in steps}
        self.plain = plain
        self.body = body
        self.owner = owner
        self.around = around
        self.before = before
        """What comes before the ids of its steps in their paths."""
        self.beside = body.beside if body is not None else frozenset[str]()
        self.variables = body.variables if body is not None else frozenset[str]()

    def of(self, owner: Step, body: Body) -> Scope:
        """The scope of a body of one of its steps."""
        before = path_in(body, f"{self.before}{owner.id}")
        return Scope(body.steps, self.plain, body=body, owner=owner, around=self, before=before)

    @property
    def is_nested(self) -> bool:
        """Whether it is inside a step, or the `finally` of the plan."""
        return self.around is not None or bool(self.before)

    def meaning(self, name: str, own: str = "") -> Meaning:
        """What a name stands for in the step `own`."""
        scope: Scope | None = self
        while scope is not None:
            if name == own and name in scope.steps:
                return Meaning.ITSELF
            if name in scope.steps or name in scope.beside:
                return Meaning.STEP
            if name in scope.variables:
                return Meaning.VARIABLE
            own = scope.owner.id if scope.owner is not None else ""
            scope = scope.around
        return Meaning.NOTHING

    def step(self, name: str) -> Step | None:
        """The step that a name stands for."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.steps:
                return scope.steps[name]
            if name in scope.beside and scope.owner is not None:
                found = (each for body in bodies(scope.owner) if not body.part for each in body.steps)
                return next((each for each in found if each.id == name), None)
            if name in scope.variables:
                return None
            scope = scope.around
        return None

    def visible(self) -> set[str]:
        """Every name that has a meaning, but `inputs`."""
        found, scope = set[str](), self
        while True:
            found |= {*scope.steps, *scope.beside, *scope.variables}
            if scope.around is None:
                return found
            scope = scope.around

    def loop_names(self) -> set[str]:
        """The variables of all constructs around it."""
        found, scope = set(self.variables), self.around
        while scope is not None:
            found |= scope.variables
            scope = scope.around
        return found

    def item(self, own: str) -> str:
        """What the innermost loop around a step calls its item, a loop of its own included; empty outside of loops."""
        scope: Scope | None = self
        step = self.steps.get(own)
        while scope is not None:
            if step is not None and step.for_each is not None:
                return step.for_each.as_
            step, scope = scope.owner, scope.around
        return ""

    def undone(self) -> str:
        """The step in whose `undo` it is; empty if it is in none."""
        scope: Scope | None = self
        while scope is not None:
            if scope.body is not None and scope.body.part == UNDO and scope.owner is not None:
                return scope.owner.id
            scope = scope.around
        return ""

    def hint(self, name: str, hints: Hints, own: str = "", undone: str = "") -> str:
        """What a name without a meaning probably stands for in the step `own`, as the end of a sentence.

        `undone`: the step in whose `undo` it is used.
        """
        place = self.plain.inside.get(name)
        if place is not None:
            around = re.search(rf"(?:^|\.){re.escape(undone)}(?:\[\*\])?\.", place) if undone else None
            if around is not None:
                instead = f"${VALUE}.{place[around.end() :]}"
                return f"; in the `undo` of '{undone}' its value is called `{VALUE}`: write {instead}"
            block = place.partition(".")[0].removesuffix("[*]")
            return f"; it is inside the block '{block}': outside of it, write ${place}"
        if item_instead(name, "", item := self.item(own)):
            return f"; the item of this loop is called '{item}' (`forEach.as`)"
        if name in _GIVEN_BY:
            return f"; '{name}' has a value only {_GIVEN_BY[name]}"
        return hints.question(name, self.visible())


def _inside(step: Step, place: str) -> Iterator[tuple[str, str]]:
    if step.for_each is not None or (step.repeat is not None and step.repeat.keep == "all"):
        place = f"{place}[*]"
    for body in bodies(step):
        if not body.part:
            for inner in body.steps:
                yield inner.id, f"{place}.{inner.id}"
                yield from _inside(inner, f"{place}.{inner.id}")


RESERVED = frozenset((INPUTS, INDEX, KEY, ROUND, ERROR, STATUS, VALUE, "catch", "finally", "undo"))
"""Names that no step inside another one may have."""
