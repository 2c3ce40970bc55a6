"""Which places a plan needs before it starts a step, and what it does while it waits for them.

A place of each of its labels that `quotas.toml` of its worker names. It asks for one after the other, in the order of
the labels, so that no two plans wait for each other, and keeps them until it has ended. Plans that run as steps of it
run in its places and ask for none: nobody waits for a place of the plan that it belongs to.

Rejected: a count in the worker (each worker has its own), a lease (a plan may wait for a person for weeks).
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from plansurvive.features.quotas.model import Covered, QuotaGranted, QuotaPlace, QuotaPlaces, Quotas
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.notice import Notice
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import Rules

NAME = "quotas"
PREFIX = "quota-"
"""Of the ids of the workflows that keep places."""


def needed(run: Run) -> dict[str, int]:
    """The labels of which the run needs a place, and how many plans each may have, in the order of asking."""
    if not run.plan.labels or run.options.part(Covered).is_covered:
        return {}
    quotas, found = run.facts.part(Quotas).labels, dict[str, int]()
    for name, value in sorted(run.plan.labels.items()):
        label = f"{name}={value}"
        most = quotas.get(label, quotas.get(name))
        if most is not None:
            found[label] = most
    return found


def key_of(label: str) -> str:
    """The id of the workflow that keeps the places of a label."""
    return PREFIX + hashlib.sha256(label.encode(errors="surrogatepass")).hexdigest()[:32]


def next_place(run: Run) -> tuple[str, int] | None:
    """The label of the next place to ask for, and how many plans it may have; None: it has all, or waits for one."""
    asked = run.part(QuotaPlaces).asked
    if any(place.held is None for place in asked):
        return None
    known = {place.label for place in asked}
    return next(((label, most) for label, most in needed(run).items() if label not in known), None)


def waited_for(run: Run) -> QuotaPlace | None:
    """The place that the run waits for."""
    return next((place for place in run.part(QuotaPlaces).asked if place.held is None), None)


def is_held_up_otherwise(run: Run) -> bool:
    """Whether another feature keeps the run from starting: its places are the last that it asks for.

    So nobody waits for anything else while it has a place that others wait for, and no two plans wait for each other.
    """
    return any(name != NAME and notice.holds for name, notice in run.notices.items())


def ask(run: Run, label: str, most: int, token: str, now: datetime) -> QuotaPlace:
    """Note that the run asks for a place."""
    place = QuotaPlace(label=label, most=most, token=token, since=now)
    run.part(QuotaPlaces).asked.append(place)
    plans = "1 plan" if most == 1 else f"{most} plans"
    text = f"waits for its turn among the plans with the label {label}, at most {plans} at a time"
    run.notices[NAME] = Notice(text=text[:500], since=now, holds=True)
    return place


def granted(run: Run, news: QuotaGranted, now: datetime) -> bool:
    """Take over that the run has a place. False if it is not about one that it waits for."""
    asked = run.part(QuotaPlaces).asked
    for number, place in enumerate(asked):
        if place.token == news.token and place.held is None:
            asked[number] = place.model_copy(update={"held": now})
            labels = ", ".join(each.label for each in asked)
            run.notices[NAME] = Notice(text=f"has its turn among the plans with the label {labels}"[:500], since=now)
            return True
    return False


def _for_child(run: Run, step: Step, plan: Plan | None) -> Covered | None:  # noqa: ARG001
    return Covered(is_covered=True) if run.options.part(Covered).is_covered or needed(run) else None


RULES = Rules("quotas", for_child=_for_child)
