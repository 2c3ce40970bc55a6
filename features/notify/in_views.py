"""Who was notified that a step awaits a person: on the card of an approval, once that was handed over."""

from __future__ import annotations

from typing import Any

from plansurvive.features.notify.model import Told
from plansurvive.features.notify.rules import effective, mark_of
from plansurvive.plans.in_views import InViews
from plansurvive.plans.model import Step
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Run


def _card(run: Parted, step: Step) -> dict[str, Any]:
    told = run.known_part(Told)
    if not isinstance(run, Run) or told is None or told.waiting.get(step.id) != mark_of(run.steps[step.id]):
        return {}
    rules = effective(run, is_child=run.parent is not None)
    return {"notified": list(dict.fromkeys(rule.to for rule in rules if "awaiting" in rule.on))}


IN_VIEWS = InViews("notify", card=_card)
