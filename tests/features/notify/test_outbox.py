"""What is said to whom and when: once, bundled, not too often, reminded of and escalated while it waits."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from plansurvive.features.notify.outbox import BURST, IN_MESSAGE, PAUSE, WINDOW, Delivered, Delivery, Outbox
from plansurvive.features.notify.rules import News, Remark, Waiting, handed_over, with_news
from plansurvive.plans.execution.approvals import OVERRIDDEN
from plansurvive.plans.log import LogKind
from plansurvive.plans.model.notify import NotifyRule
from tests.features.policy.test_rules import run
from tests.plans.building import NOW

TEAM = NotifyRule(to="team")


def waits(name: str = "a", mark: str = "1-x") -> Waiting:
    return Waiting(mark=mark, step_id=name, digest="ab" * 32, since=NOW)


def news(*waiting: Waiting, rules: list[NotifyRule] | None = None, **fields: object) -> News:
    said = {"plan_id": "p", "workflow_id": "plan-p", "run_id": "r1", "root": "plan-p", "rules": rules or [TEAM]}
    return News.model_validate({**said, "waiting": list(waiting), "at": NOW, **fields})


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def sent(delivery: Delivery) -> Delivered:
    """It was sent, and everything in it still waits."""
    return Delivered(sent=True, still=[each.id for each in delivery.notices])


def deliver(outbox: Outbox, now: datetime) -> list[Delivery]:
    """Send what is due; everything still waits."""
    found = outbox.due(now, ())
    for each in found:
        outbox.ended(each, sent(each), now)
    return found


def test_news_that_is_handed_over_twice_is_said_once() -> None:
    outbox = Outbox()
    for _ in range(2):
        outbox.take(news(waits()), NOW)
    assert [len(each.notices) for each in deliver(outbox, after(1))] == [1]
    outbox.take(news(waits()), after(2))
    assert deliver(outbox, after(9)) == []


def test_a_step_that_asks_about_another_call_is_said_again() -> None:
    outbox = Outbox()
    for mark in ("1-x", "7-y"):
        outbox.take(news(waits(mark=mark)), NOW)
    assert len(deliver(outbox, after(1))[0].notices) == 2


def test_what_begins_to_wait_within_a_second_is_one_message() -> None:
    outbox = Outbox()
    for number in range(20):
        outbox.take(news(waits(f"each[{number}]")), after(number / 100))
    assert outbox.due(after(0.5), ()) == []
    (message,) = deliver(outbox, after(1))
    assert len(message.notices) == 20
    assert outbox.notices == []


def test_after_a_burst_everything_that_comes_meanwhile_is_one_message_a_minute() -> None:
    outbox, now = Outbox(), NOW
    for number in range(BURST):
        outbox.take(news(waits(f"a{number}")), now)
        now += WINDOW
        assert len(deliver(outbox, now)) == 1
    for number in range(30):
        outbox.take(news(waits(f"b{number}")), now)
    assert outbox.due(now + timedelta(seconds=30), ()) == []
    assert outbox.next_due(now, ()) == now + PAUSE
    (message,) = outbox.due(now + PAUSE, ())
    assert len(message.notices) == 30


def test_a_thousand_decisions_are_all_said_in_bounded_messages() -> None:
    outbox, now, named = Outbox(), NOW, list[str]()
    outbox.take(news(*(waits(f"each[{number}]") for number in range(1_000))), now)
    while (due := outbox.next_due(now, ())) is not None:
        now = max(now, due)
        for each in deliver(outbox, now):
            assert len(each.notices) <= IN_MESSAGE
            named += [one.waiting.step_id for one in each.notices if one.waiting]
    assert sorted(named) == sorted(f"each[{number}]" for number in range(1_000))


def test_a_target_that_is_busy_delays_no_other() -> None:
    outbox = Outbox()
    outbox.take(news(waits(), rules=[TEAM, NotifyRule(to="audit")]), NOW)
    assert [each.target for each in outbox.due(after(1), ["team"])] == ["audit"]
    assert outbox.next_due(after(1), ["team"]) is None
    assert [each.target for each in outbox.due(after(1), ())] == ["team"]


def test_reminders_come_in_their_interval_until_it_waits_no_longer() -> None:
    outbox = Outbox()
    outbox.take(news(waits(), rules=[NotifyRule(to="team", remind=60)]), NOW)
    deliver(outbox, after(1))
    assert outbox.next_due(after(1), ()) == after(61)
    (second,) = deliver(outbox, after(61))
    assert (second.stage, second.number) == ("reminder", 1)
    (third,) = outbox.due(after(121), ())
    assert third.id != second.id
    outbox.ended(third, Delivered(sent=False), after(121))
    assert outbox.notices == []
    assert (outbox.said, outbox.withdrawn) == (2, 1)


def test_an_escalation_counts_from_when_it_began_to_wait() -> None:
    rule = NotifyRule.model_validate({"to": "team", "escalate": {"after": "4h", "to": "boss"}})
    outbox = Outbox()
    outbox.take(news(waits(), rules=[rule]), after(60))
    deliver(outbox, after(61))
    assert outbox.next_due(after(61), ()) == after(4 * 3_600)
    (message,) = outbox.due(after(4 * 3_600), ())
    assert (message.target, message.stage) == ("boss", "escalation")


def test_what_was_given_up_is_counted_and_still_reminded_of() -> None:
    outbox = Outbox()
    outbox.take(news(waits(), rules=[NotifyRule(to="team", remind=60)]), NOW)
    (message,) = outbox.due(after(1), ())
    outbox.ended(message, None, after(86_400))
    assert outbox.lost == 1
    assert outbox.next_due(after(86_400), ()) == after(86_460)


@pytest.mark.parametrize(
    ("on", "said"), [("awaiting", 1), ("budget", 1), (["awaiting", "budget"], 1), ("completed", 0)]
)
def test_a_question_about_a_budget_is_said_once_to_those_who_want_either(on: object, said: int) -> None:
    rule, outbox = NotifyRule.model_validate({"to": "team", "on": on}), Outbox()
    outbox.take(news(waits().model_copy(update={"kind": "budget"}), rules=[rule]), NOW)
    assert sum(len(each.notices) for each in outbox.due(after(1), ())) == said


def test_ends_and_remarks_of_plans_are_messages_of_their_own() -> None:
    outbox = Outbox()
    outbox.take(news(waits(), remarks=[Remark(seq=3, text="80 %", time=NOW)], ended="failed", reason="bad"), NOW)
    events = list[str]()
    for second in range(1, 5):
        events += [each.event for each in deliver(outbox, after(second))]
    assert sorted(events) == ["awaiting", "budget", "failed"]


def test_an_override_is_told_to_every_target_whatever_else_it_wants_to_know() -> None:
    found, outbox = run(), Outbox()
    found.note(LogKind.APPROVED, "step 's' approved by dan alone", NOW, "s", code=OVERRIDDEN)
    rules = [NotifyRule(to=to, on=["cancelled"]) for to in ("team", "boss")]
    told = with_news(found, [], news(rules=rules))
    assert told is not None
    outbox.take(told, NOW)
    assert [(each.target, each.event, each.notices[0].text) for each in outbox.due(after(1), ())] == [
        (to, "overridden", "step 's' approved by dan alone") for to in ("team", "boss")
    ]
    handed_over(found, told, [])
    assert with_news(found, [], news(rules=rules)) is None


def test_an_outbox_survives_as_json() -> None:
    outbox = Outbox()
    outbox.take(news(waits(), rules=[NotifyRule(to="team", remind=60)]), NOW)
    deliver(outbox, after(1))
    again = Outbox.model_validate(outbox.model_dump(mode="json", exclude_defaults=True))
    assert again == outbox
    again.take(news(waits()), after(2))
    assert again.notices == outbox.notices
