"""What a step depends on: the steps it names, and those whose values its arguments and its condition use."""

from __future__ import annotations

from plans.definition.conditions import roots_of
from plans.definition.references import find
from plans.model import Step


def dependencies(step: Step) -> dict[str, bool]:
    """The steps this one needs, in reading order; true where it uses the value."""
    found = dict.fromkeys(step.depends_on, False)
    for reference in find(step.args):
        found[reference.root] = True
    for root in roots_of(step.when):
        found[root] = True
    return found
