"""What views show of a step that certain people must approve: who has, and who must still."""

from __future__ import annotations

from collections.abc import Iterator

from plansurvive.features.policy.rules import standing_of
from plansurvive.plans.in_views import InViews
from plansurvive.plans.model import Step
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Run
from plansurvive.plans.step_state import Approved, Consent


def _consents(run: Parted, step: Step) -> Iterator[Consent]:
    found = standing_of(run, step) if isinstance(run, Run) else None
    for each in found.rules if found else ():
        yield Consent(
            rule=each.term.rule,
            by=each.term.by,
            count=each.needed,
            decided=[Approved(by=name, time=time) for name, time in each.counted],
            missing=each.missing,
            expires=each.expires,
            text=each.text,
        )


IN_VIEWS = InViews("policy", consents=_consents)
