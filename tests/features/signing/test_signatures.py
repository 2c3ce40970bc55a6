"""What a signature covers, and that none counts twice however many there were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from plansurvive.features.signing.model import REMEMBERED, SCHEDULE_DAYS, START_MINUTES, Honoured, signed_bytes
from plansurvive.features.signing.verification import checked, schedule_problem, start_problem
from plansurvive.plans.errors import Refused
from plansurvive.plans.signature import FIELD, Signature, signature_of

KEY = Ed25519PrivateKey.generate()
PUBLIC = KEY.public_key().public_bytes_raw().hex()
NONCE = "0123456789abcdef"
MESSAGE: dict[str, Any] = {"stepId": "s", "approved": True, "args": {"b": 1.0, "a": ["ä", None]}}


def signed(number: int, message: dict[str, Any] = MESSAGE, time: int = 0, nonce: str = NONCE) -> dict[str, Any]:
    """The message, signed for plan-p and a nonce of its run; `number` makes the id."""
    request = f"{number:032x}"
    value = KEY.sign(signed_bytes("decide", "plan-p", nonce, message, request, time)).hex()
    return {**message, FIELD: {"id": request, "time": time, "value": value}}


def honoured(nonce: str = NONCE) -> Honoured:
    """Of a run that has honoured none."""
    return Honoured(nonce=nonce)


def take(message: dict[str, Any], done: Honoured) -> None:
    done.note(checked(PUBLIC, "decide", "plan-p", message, done))


def code(message: dict[str, Any], done: Honoured) -> str:
    before = done.model_copy(deep=True)
    with pytest.raises(Refused) as caught:
        take(message, done)
    assert done == before
    return caught.value.code


def test_the_order_of_fields_does_not_matter_and_everything_else_does() -> None:
    good, done = signed(1), honoured()
    take(dict(reversed(good.items())), done)
    assert done.used == [f"{1:032x}"]
    changed: tuple[dict[str, Any], ...] = (
        {"stepId": "t"},
        {"approved": False},
        {"approved": 1},
        {"args": {}},
        {"more": 1},
        {"by": ""},
    )
    assert {code({**good, **change}, honoured()) for change in changed} == {"BAD_SIGNATURE"}
    fields = ({"time": 2}, {"id": "0" * 32}, {"value": "0" * 128})
    for change in fields:
        assert code({**good, FIELD: {**good[FIELD], **change}}, honoured()) == "BAD_SIGNATURE"
    assert code(good, honoured("f" * 16)) == "BAD_SIGNATURE"
    assert code(MESSAGE, honoured()) == "UNSIGNED"


def test_no_signature_counts_twice_and_the_memory_is_bounded() -> None:
    done, sent = honoured(), list[dict[str, Any]]()
    for number in range(3 * REMEMBERED + 9):
        sent.append(signed(number, nonce=done.nonce))
        take(sent[-1], done)
        assert len(done.used) + len(done.earlier) <= 2 * REMEMBERED
    assert len({done.nonce, NONCE, done.previous}) == 3
    assert {code(message, done) for message in sent} == {"REPLAYED", "BAD_SIGNATURE"}
    assert {code(message, done) for message in sent[-REMEMBERED:]} == {"REPLAYED"}
    assert Honoured.model_validate(done.model_dump(mode="json")) == done


@pytest.mark.parametrize("count", [0, 1, REMEMBERED - 1, REMEMBERED, 2 * REMEMBERED])
def test_a_new_message_counts_however_far_the_clock_was_set_back(count: int) -> None:
    done = honoured()
    for number in range(count):
        take(signed(number, time=9_000_000 + number, nonce=done.nonce), done)
    take(late := signed(count, time=0, nonce=done.nonce), done)
    assert code(late, done) == "REPLAYED"


def test_a_message_that_is_on_its_way_while_the_nonce_changes_counts_once() -> None:
    done, under_way = honoured(), signed(REMEMBERED, nonce=NONCE)
    for number in range(REMEMBERED):
        take(signed(number), done)
    assert done.nonce != NONCE
    take(under_way, done)
    assert code(under_way, done) == "REPLAYED"
    assert code(under_way, honoured(done.nonce)) == "BAD_SIGNATURE", "control: by the nonce before alone"


def test_a_start_can_be_used_for_some_minutes_only() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    message = signed(1, time=int(now.timestamp() * 1_000))
    content = signed_bytes("decide", "plan-p", NONCE, MESSAGE, f"{1:032x}", message[FIELD]["time"])
    found = signature_of(message)
    for minutes, problem in ((0, ""), (START_MINUTES, ""), (START_MINUTES + 1, "too old"), (-START_MINUTES - 1, "old")):
        assert problem in start_problem(PUBLIC, found, content, now + timedelta(minutes=minutes))
    assert "not signed" in start_problem(PUBLIC, None, b"", now)
    assert "not by" in start_problem("00" * 32, found, content, now)
    assert start_problem(PUBLIC, found, content, now) == ""


def test_a_schedules_signature_expires_and_counts_for_times_that_are_due_once_and_until_it_is_revoked() -> None:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    content = signed_bytes("schedule", "plan-p", "", MESSAGE, f"{1:032x}", int(made.timestamp() * 1_000))
    value = KEY.sign(content).hex()
    found = Signature(id=f"{1:032x}", time=int(made.timestamp() * 1_000), value=value)

    def problem(due: datetime, started: datetime, since: int | None = 0) -> str:
        return schedule_problem(PUBLIC, found, content, f"plan-p-{due:%Y-%m-%dT%H:%M:%SZ}", started, since)

    for days in (0, 1, SCHEDULE_DAYS):
        at = made + timedelta(days=days)
        assert problem(at, at) == ""
    late = made + timedelta(days=SCHEDULE_DAYS + 1)
    assert "expired" in problem(late, late)
    assert "not due" in problem(made + timedelta(hours=1), made)
    assert "not due" in problem(made - timedelta(days=2), made)
    assert "before" in problem(made, made, None)
    assert "changed or deleted" in problem(made, made, found.time + 1)
    assert problem(made, made, found.time) == ""
    assert "not signed" in schedule_problem(PUBLIC, None, b"", "plan-p", made, 0)
