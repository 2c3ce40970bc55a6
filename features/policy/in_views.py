"""What views show of a step that certain people must approve: who has, and who must still; and what the policy said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plansurvive.features.policy.consent import in_words
from plansurvive.features.policy.rules import logins_of, people_of, ruling_of, standing_of, term_of, terms_of_plan
from plansurvive.plans.in_views import InViews
from plansurvive.plans.model import Step
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Run
from plansurvive.plans.step_state import Approved, Consent, StepState
from plansurvive.plans.text.safe_text import line


def _card(run: Parted, step: Step) -> dict[str, Any]:
    consents = list(_consents(run, step))
    return {"consents": consents, "reasons": [each.text for each in consents]} if consents else {}


def _consents(run: Parted, step: Step) -> Iterator[Consent]:
    if not isinstance(run, Run):
        return
    found = standing_of(run, step)
    for term in terms_of_plan(run, step) if found is None else ():
        if term.demands:  # the worker has not counted yet
            yield Consent(rule="", by=term.by, count=term.count, missing=term.count, text=in_words(term))
    for each in found.rules if found else ():
        yield Consent(
            rule=each.term.rule,
            by=each.term.by,
            count=each.needed,
            override=each.term.override,
            decided=[Approved(by=name, time=time) for name, time in each.counted],
            missing=each.missing,
            expires=each.expires,
            people=people_of(run, step, each.term) if each.missing else {},
            logins=logins_of(run, step, [*each.term.override, *(name for name, _ in each.counted)]),
            text=each.text,
        )


def _details(_: str, step: Step, state: StepState) -> list[str]:
    rule = step.approval
    wants = [line(f"Approval: {in_words(term_of(rule))}")] if rule is not None and rule.names_people else []
    return wants + _ruled(state)


def _ruled(state: StepState) -> list[str]:
    ruling = ruling_of(state.result) if state.result is not None else None
    if ruling is None or not ruling.decide:
        return []
    file = f" (policy {ruling.hash[:12]})" if ruling.hash else ""
    return [line(f"Policy: {ruling.reason}{file}")]


IN_VIEWS = InViews("policy", details=_details, card=_card)
