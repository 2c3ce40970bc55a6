"""The ids of plans that work on steps of others, derived from the id of the plan above and the step's.

So a resumed plan finds its children; an author may choose one for a child plan.
"""

from __future__ import annotations

import hashlib
import re

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_RUN = re.compile(r".+(-r[1-9][0-9]*)")


def child_id(plan_id: str, step_id: str, calls: int, chosen: str | None = None) -> str:
    """The id of a step's child plan; `calls` numbers the calls of the step, from 1; `chosen`: by the plan's author.

    An id is never used twice: in a resumed run, a chosen one gets the number of the run (`x-r2`).
    """
    again = f"-{calls}" if calls > 1 else ""
    if chosen:
        run = _RUN.fullmatch(plan_id)
        return f"{chosen[:180]}{run[1] if run else ''}{again}"
    return f"{plan_id[:110]}-{slug(step_id)}{again}"


def slug(step_id: str) -> str:
    """A step id as part of a workflow id; ids of instances (`resize[cat.png]`) have characters that none may have."""
    safe = _UNSAFE.sub("-", step_id).strip("-")
    if safe == step_id and len(safe) <= 70:
        return safe
    return f"{safe[:60].rstrip('-')}-{hashlib.sha256(step_id.encode()).hexdigest()[:8]}"
