"""The priority and the fairness key that a plan is started with.

Temporal hands them on to everything below: activities, agents, child plans, and the plan's runs after continue-as-new.
A server without fairness ignores the key, and one without priorities both.
"""

from __future__ import annotations

import hashlib

from temporalio.common import Priority

from plansurvive.plans.model import Plan
from plansurvive.plans.model.shares import DEFAULT_PRIORITY, Fairness
from plansurvive.plans.run import Options

MAX_KEY = 64
"""Bytes of a fairness key (Temporal)."""


def priority_of(plan: Plan | None, options: Options | None) -> Priority:
    """What the options say, else the plan; without a fairness key, who starts the plan is the key."""
    given = options or Options()
    number = given.priority or (plan.priority if plan else None)
    share = given.fairness or (plan.fairness if plan else None)
    key = share.key if share else given.by
    return Priority(
        priority_key=number,
        fairness_key=_short(key) if key else None,
        fairness_weight=share.weight if share and share.weight != 1.0 else None,
    )


def of_another(plan: Plan, by: str, timeout: float | None = None) -> dict[str, object]:
    """Options of a plan that a program starts for somebody: it neither overtakes nor uses the share of others.

    Nor may it take longer than the plan itself says, which a person may have written: the shorter limit counts.
    """
    return {
        "priority": max(plan.priority or 0, DEFAULT_PRIORITY),
        "fairness": Fairness(key=by[:200]) if by else None,
        "timeout": None if timeout is None else min(timeout, plan.timeout or timeout),
    }


def fairness_of(text: str | None) -> Fairness | None:
    """`KEY` or `KEY=WEIGHT`, as `--fairness` takes it. Raises ValueError."""
    if not text:
        return None
    key, equals, weight = text.rpartition("=")
    return Fairness(key=key, weight=float(weight)) if equals else Fairness(key=text)


def _short(key: str) -> str:
    data = key.encode(errors="replace")
    return data.decode() if len(data) <= MAX_KEY else hashlib.sha256(data).hexdigest()
