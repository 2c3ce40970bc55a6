"""What views show of a step that certain people must approve: who has, who must still, who may not; what was said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plansurvive.features.policy.consent import in_words
from plansurvive.features.policy.rules import logins_of, people_of, ruling_of, standing_of, term_of, terms_of_plan
from plansurvive.plans.in_views import AskedOf, InViews, Viewer, Way
from plansurvive.plans.model import Step
from plansurvive.plans.model.identities import identity
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Run
from plansurvive.plans.step_state import Approved, Consent, StepState
from plansurvive.plans.text.safe_text import line

_UNPROVEN = (
    "this page has no login that proves who you are, which those who must approve it have to prove; decide with a key"
    " of your own (`plan keys person NAME`), or on a page with a login"
)


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


def _barred(card: AskedOf, viewer: Viewer) -> str:
    mine, reasons = identity(viewer.name), list[str]()
    wanting = [each for each in card.consents if each.missing]
    if wanting and not viewer.is_proven:
        return _UNPROVEN
    if _has_approved(card, viewer):
        return "you have approved it; others must as well" if wanting else ""
    for each in wanting:
        may = {identity(one): why for one, why in each.people.items()}
        if not may.get(mine, "no") or not (may or each.by):
            return ""
        reasons.append(may.get(mine) or f"rule '{each.rule}' lets {', '.join(each.by[:10]) or 'others'} decide")
    return "; ".join(reasons)


def _ways(card: AskedOf, viewer: Viewer) -> Iterator[Way]:
    if _has_approved(card, viewer):
        yield Way("withdraw", "Withdraw mine")
    wanting = [each for each in card.consents if each.missing]
    if viewer.is_proven and any(_is_called(each, viewer, name) for each in wanting for name in each.override):
        text = "In place of all who must approve. Everybody whom this plan notifies gets a message."
        yield Way("approve", "Approve alone", "override", text, "Why it cannot wait")


def _has_approved(card: AskedOf, viewer: Viewer) -> bool:
    return any(_is_called(each, viewer, done.by) for each in card.consents for done in each.decided)


def _is_called(consent: Consent, viewer: Viewer, person: str) -> bool:
    return identity(viewer.name) in map(identity, (person, *consent.logins.get(person, ())))


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


IN_VIEWS = InViews("policy", details=_details, card=_card, barred=_barred, ways=_ways)
