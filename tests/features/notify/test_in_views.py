"""Who was notified stands on the card of what waits, once it was handed over."""

from __future__ import annotations

from plansurvive.features.notify.in_views import IN_VIEWS
from plansurvive.features.notify.model import Told
from plansurvive.features.notify.rules import mark_of
from plansurvive.plans.model.notify import NotifyRule
from plansurvive.plans.run import Status
from plansurvive.plans.step_state import Change
from plansurvive.plans.views.models.card import Card
from tests.features.policy.test_rules import run
from tests.plans.building import NOW


def test_the_card_names_those_to_whom_a_message_about_exactly_this_question_was_handed() -> None:
    found = run()
    team = [NotifyRule(to="team"), NotifyRule(to="ops", on=["failed"]), NotifyRule(to="boss", on=["awaiting"])]
    found.plan = found.plan.model_copy(update={"notify": team})
    [step], state = found.plan.steps, found.steps["s"]
    state.changes.append(Change(3, NOW, Status.PENDING))
    assert IN_VIEWS.card is not None
    assert IN_VIEWS.card(found, step) == {}, "not yet"
    found.keep(Told(waiting={"s": mark_of(state)}))
    assert IN_VIEWS.card(found, step) == {"notified": ["team", "boss"]}
    found.keep(Told(waiting={"s": "1-another"}))
    assert IN_VIEWS.card(found, step) == {}, "of another call of the step"
    card = Card(step_id="s", kind="approval", tool="t", notified=["team", "boss"])
    assert [(each.name, each.value) for each in card.places if each.name == "notified"] == [("notified", "team, boss")]
