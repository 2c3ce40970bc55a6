"""What a denial does to the steps that wait for the denied one, in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from plansurvive.plans.step_state import DONE
from plansurvive.plans.text.lists import some
from plansurvive.plans.views.models import StepView

NAMED = 3
"""Steps that a sentence names; further ones are counted."""


def will_not_run(steps: Sequence[StepView], denied: str) -> str:
    """The end of a sentence about a denial: the steps that wait for the denied one, directly or through others."""
    dependents: dict[str, list[str]] = {}
    for step in steps:
        for name in step.needs if step.status not in DONE else ():
            dependents.setdefault(name, []).append(step.id)
    stopped, to_visit = {denied}, deque([denied])
    while to_visit:
        found = [name for name in dependents.get(to_visit.popleft(), ()) if name not in stopped]
        stopped.update(found)
        to_visit.extend(found)
    names = [step.id for step in steps if step.id in stopped and step.id != denied]
    if not names:
        return ""
    verb = "waits" if len(names) == 1 else "wait"
    return f"; {some(names, NAMED)} {verb} for it and will not run"
