"""What views show of a step that certain people must approve: who has, and who must still; and what the policy said."""

from __future__ import annotations

from collections.abc import Iterator

from plansurvive.features.policy.rules import people_of, ruling_of, standing_of
from plansurvive.plans.in_views import InViews
from plansurvive.plans.model import Step
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Run
from plansurvive.plans.step_state import Approved, Consent, StepState
from plansurvive.plans.text.safe_text import line


def _consents(run: Parted, step: Step) -> Iterator[Consent]:
    found = standing_of(run, step) if isinstance(run, Run) else None
    for each in found.rules if found else ():
        yield Consent(
            rule=each.term.rule,
            by=each.term.by,
            count=each.needed,
            override=each.term.override,
            decided=[Approved(by=name, time=time) for name, time in each.counted],
            missing=each.missing,
            expires=each.expires,
            people=people_of(run, step, each.term) if each.missing and isinstance(run, Run) else {},
            text=each.text,
        )


def _details(_: str, __: Step, state: StepState) -> list[str]:
    ruling = ruling_of(state.result) if state.result is not None else None
    if ruling is None or not ruling.decide:
        return []
    file = f" (policy {ruling.hash[:12]})" if ruling.hash else ""
    return [line(f"Policy: {ruling.reason}{file}")]


IN_VIEWS = InViews("policy", details=_details, consents=_consents)
