"""The chain of an audit record: what was changed, removed, moved or put in is found."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from plansurvive.features.audit.chain import broken, chained, differs, forged, hash_of, head, origin
from plansurvive.features.audit.entries import Act, Entry
from plansurvive.features.audit.messages import of_message, of_start
from plansurvive.features.signing.model import nonce_after
from plansurvive.features.signing.signer import signed

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
ORIGIN = origin("plan-a", "run")
ACTS = [
    Act(time=NOON + timedelta(minutes=number), action="approve", by=name, step_id="deploy", digest="ab" * 32)
    for number, name in enumerate(["ann", "bob", "cat", "dan"])
]
CHAIN = chained(ACTS, ORIGIN)


def forgotten(entries: list[Entry]) -> list[Entry]:
    return [*entries[:1], *entries[2:]]


def changed(entries: list[Entry]) -> list[Entry]:
    return [entries[0], entries[1].model_copy(update={"by": "eve"}), *entries[2:]]


def rehashed(entries: list[Entry]) -> list[Entry]:
    other = entries[1].model_copy(update={"by": "eve"})
    return [entries[0], other.model_copy(update={"hash": hash_of(other)}), *entries[2:]]


def moved(entries: list[Entry]) -> list[Entry]:
    return [entries[0], entries[2], entries[1], entries[3]]


def twice(entries: list[Entry]) -> list[Entry]:
    return [entries[0], entries[0], *entries[1:]]


def beheaded(entries: list[Entry]) -> list[Entry]:
    return entries[1:]


@pytest.mark.parametrize("attack", [forgotten, changed, rehashed, moved, twice, beheaded])
def test_an_entry_that_was_changed_removed_moved_or_inserted_is_found(
    attack: Callable[[list[Entry]], list[Entry]],
) -> None:
    assert broken(CHAIN, ORIGIN) == []
    assert broken(attack(list(CHAIN)), ORIGIN)


def test_the_record_of_another_plan_is_found() -> None:
    assert broken(CHAIN, origin("plan-b", "run"))


@pytest.mark.parametrize("left", [0, 3])
def test_a_chain_alone_does_not_show_that_its_end_is_missing_but_its_head_does(left: int) -> None:
    assert broken(CHAIN[:left], ORIGIN) == []
    assert head(CHAIN[:left], ORIGIN) != head(CHAIN, ORIGIN)
    assert differs(CHAIN[:left], CHAIN)


def test_a_chain_that_was_computed_again_differs_from_the_history() -> None:
    forgery = chained([ACTS[0].model_copy(update={"by": "eve"}), *ACTS[1:]], ORIGIN)
    assert broken(forgery, ORIGIN) == []
    assert [each.code for each in differs(forgery, CHAIN)] == ["AUDIT_DIFFERS"]
    assert differs(CHAIN, CHAIN) == []


def test_an_entry_read_from_its_json_is_the_same() -> None:
    assert [Entry.model_validate_json(each.model_dump_json(exclude_defaults=True)) for each in CHAIN] == CHAIN


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("approve", "decide", {"stepId": "deploy", "by": "ann", "digest": "ab" * 32}),
        ("decide", "decide", {"stepId": "deploy", "approved": False, "comment": "nein", "args": {"a": [1, 2.5, "ü"]}}),
        ("edit", "edit", {"expectVersion": 3, "edits": [{"op": "skip", "stepId": "x"}]}),
    ],
)
def test_signatures_are_checked_without_the_message(name: str, kind: str, message: dict[str, object]) -> None:
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    public, wrong = (each.public_key().public_bytes_raw().hex() for each in (key, other))
    sent = signed(key, kind, "plan-a", "run", message, name if name == "approve" else "")
    entries = chained([Act(time=NOON, **of_message(name, sent, "run"))], ORIGIN)
    assert entries[0].signed is not None
    assert forged(entries, "plan-a", public) == []
    assert forged(entries, "plan-a", wrong)
    assert forged(entries, "plan-b", public)
    assert forged([entries[0].model_copy(update={"message": "0" * 64})], "plan-a", public)
    # Sent while the run took its next nonce.
    later = chained([Act(time=NOON, **of_message(name, sent, nonce_after("run"), "run"))], ORIGIN)
    assert forged(later, "plan-a", public) == []
    assert forged(later, "plan-a", wrong)
    assert forged(chained([Act(time=NOON, **of_message(name, sent, nonce_after("run")))], ORIGIN), "plan-a", public)


def test_the_signature_of_a_start_is_checked() -> None:
    key = Ed25519PrivateKey.generate()
    start = signed(key, "start", "plan-a", "", {"plan": {"steps": [], "version": 4}, "options": {"by": "ann"}})
    [entry] = chained([Act(time=NOON, action="started", **of_start(start, "plan-a", ""))], ORIGIN)
    assert (entry.by, entry.version) == ("ann", 4)
    assert forged([entry], "plan-a", key.public_key().public_bytes_raw().hex()) == []


@pytest.mark.parametrize(
    "sent", [None, [], "text", {"by": 7, "stepId": ["x"], "version": True, "digest": "zz"}, {"by": "x" * 9_999}]
)
def test_a_message_of_any_shape_becomes_a_bounded_entry(sent: object) -> None:
    for name in ("approve", "decide", "control", "y" * 999):
        [entry] = chained([Act(time=NOON, **of_message(name, sent, "run"))], ORIGIN)
        assert len(entry.model_dump_json()) < 3_000
    assert Act(time=NOON, action="started", **of_start(sent, "plan-a", "")).version is None


def test_no_value_of_a_message_is_in_its_entry() -> None:
    canary = "canary-7f3a"
    sent = {
        "stepId": "s",
        "by": "ann",
        "comment": canary,
        "args": {"password": canary},
        "value": canary,
        "reason": canary,
    }
    assert canary not in Act(time=NOON, **of_message("decide", sent, "run")).model_dump_json()
