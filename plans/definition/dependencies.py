"""Dependencies of a step: those in `dependsOn`, and those its arguments and condition reference."""

from __future__ import annotations

from plans.definition.conditions import roots_of
from plans.definition.references import find
from plans.model import Step


def dependencies(step: Step) -> dict[str, bool]:
    """Ids of the steps this one depends on, in reading order; true where it uses the value."""
    found = dict.fromkeys(step.depends_on, False)
    for reference in find(step.args):
        found[reference.root] = True
    for root in roots_of(step.when):
        found[root] = True
    return found
