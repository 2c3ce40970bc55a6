"""The brief view as it is now, from an earlier one and what may differ since: what a watcher asks a big plan for.

Rejected: applying the query `events`; an event has neither counts nor children, so the page would compute them a second
time, and differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.client.verbs.runs import BriefView
from plansurvive.plans.run import ENDED
from plansurvive.plans.views.queries import BRIEF, brief_since

BIG = 100
"""Steps from which on only those are asked for that may differ: of fewer, all are read as fast."""


def asked_of(before: BriefView | None) -> Mapping[str, Any]:
    """The argument of the query `plan` for a client that has this view."""
    return BRIEF if before is None or len(before.steps) < BIG else brief_since(before.seq, before.version)


def merged(before: BriefView | None, found: BriefView) -> BriefView | None:
    """The whole view. None if it has to be asked for as a whole: a plan that has ended is read once more, completely.

    `before`: the view that `asked_of` was called with.
    """
    if found.since is None:
        return found
    known = {step.id for step in before.steps} if before is not None else set()
    changed = {step.id: step for step in found.steps}
    if before is None or before.seq != found.since or found.status in ENDED or not changed.keys() <= known:
        return None
    steps = [changed.get(step.id, step) for step in before.steps]
    log = [*before.log, *found.log]
    return found.model_copy(update={"steps": steps, "log": log, "since": None})
