"""The steps of a plan in one list, those inside blocks included, with what each waits for. Pure.

A step inside a block waits for what the block waits for; the block has ended when its steps have. Steps of `catch`,
`finally` and `undo` run after the others and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.scopes import bodies, path_in
from plansurvive.plans.model import Step


class Placed(NamedTuple):
    """A step under its path."""

    step: Step
    needs: list[str]
    """Paths of the steps that end before it starts."""
    loop: str
    """Path of the loop whose items run it at the same time; empty if there is none."""


def flattened(steps: Sequence[Step]) -> list[Placed]:
    """Every step, in reading order. Raises BadExpression."""
    ids, found = {step.id for step in steps}, list[Placed]()
    for step in steps:
        needs = [name for name in dependencies(step) if name in ids]
        if step.is_block or step.for_each is not None:
            _add(found, step, needs, "", sometimes=False)
        else:
            found.append(Placed(step, needs, ""))
    return found


def _add(found: list[Placed], step: Step, needs: list[str], loop: str, *, sometimes: bool) -> None:
    """Add a step whose id is its path, and those inside it. `sometimes`: a condition around it may leave it out."""
    if step.for_each is not None and step.for_each.max_parallel != 1:
        loop = loop or step.id
    sometimes = sometimes or step.when is not None
    place, within = len(found), list[str]()
    for body in bodies(step):
        if body.part:
            continue
        ids = {each.id: f"{path_in(body, step.id)}{each.id}" for each in body.steps}
        within += ids.values()
        for each in body.steps:
            before = [*needs, *(ids[name] for name in dependencies(each) if name in ids)]
            inner = each.model_copy(update={"id": ids[each.id]})
            _add(found, inner, before, loop, sometimes=sometimes or step.switch is not None)
    own = step.model_copy(update={"when": step.when or "`true`"}) if sometimes else step
    found.insert(place, Placed(own, [*needs, *within], loop))
