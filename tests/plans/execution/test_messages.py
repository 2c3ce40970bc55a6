"""Messages of any shape: read, or refused with a code and a sentence; never another exception (FAULTS 138-150)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.messages import Approve, Control, Decide, Deny, Since, check_control, read
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Value
from tests.plans.building import run_of, step

BAD: list[tuple[str, Sequence[Any], str]] = [
    ("138 no argument", [], "BAD_MESSAGE"),
    ("139 two arguments", [{"stepId": "a"}, {"stepId": "b"}], "BAD_MESSAGE"),
    ("140 null", [None], "BAD_MESSAGE"),
    ("141 a text", ["a"], "BAD_MESSAGE"),
    ("a list", [["a"]], "BAD_MESSAGE"),
    ("a number", [5], "BAD_MESSAGE"),
    ("bytes", [b"\xff\x00"], "BAD_MESSAGE"),
    ("no step", [{}], "BAD_MESSAGE"),
    ("an empty step", [{"stepId": ""}], "BAD_MESSAGE"),
    ("a step that is no text", [{"stepId": ["a"]}], "BAD_MESSAGE"),
    ("144 a field of another system", [{"stepId": "a", "requestId": "1"}], "BAD_MESSAGE"),
    ("149 a wrong word for yes", [{"stepId": "a", "ok": "yes"}], "BAD_MESSAGE"),
    ("args that are no object", [{"stepId": "a", "args": [1]}], "BAD_MESSAGE"),
    ("a version that is no number", [{"stepId": "a", "version": "1"}], "BAD_MESSAGE"),
    ("150 17 KiB", [{"stepId": "a", "args": {"x": "y" * 17_000}}], "MESSAGE_TOO_LARGE"),
    ("150 in another script", [{"stepId": "a", "args": {"x": "я" * 9_000}}], "MESSAGE_TOO_LARGE"),
    ("bytes inside", [{"stepId": b"a", "args": {"x": b"y" * 20_000}}], "MESSAGE_TOO_LARGE"),
    ("half a character", [{"stepId": 5, "by": "\ud800"}], "BAD_MESSAGE"),
]


@pytest.mark.parametrize(("arguments", "code"), [each[1:] for each in BAD], ids=[each[0] for each in BAD])
@pytest.mark.parametrize("kind", [Approve, Deny, Decide])
def test_a_malformed_decision_is_refused(kind: type[Approve], arguments: Sequence[Any], code: str) -> None:
    with pytest.raises(Refused) as caught:
        read(kind, arguments)
    assert caught.value.code == code
    assert len(caught.value.message) < 500


def test_a_refusal_shows_what_was_expected() -> None:
    with pytest.raises(Refused, match=r'like \{"stepId": "step_1", "approved": true\}'):
        read(Decide, [])
    with pytest.raises(Refused, match=r'like \{"stepId": "step_1"\}, got None'):
        read(Approve, [None])


@pytest.mark.parametrize("approved", ["yes", 1, None, "true"])
def test_a_decision_is_true_or_false_and_nothing_else(approved: Any) -> None:
    with pytest.raises(Refused, match="approved"):
        read(Decide, [{"stepId": "a", "approved": approved}])


def test_a_decision_in_either_spelling_is_read() -> None:
    assert read(Approve, [{"stepId": "a", "by": "ann"}]) == read(Approve, [{"step_id": "a", "by": "ann"}])
    assert read(Decide, [{"stepId": "a", "approved": False, "version": 3}]).version == 3


@pytest.mark.parametrize("arguments", [[], [None], [{}]])
def test_a_control_may_come_with_nothing(arguments: Sequence[Any]) -> None:
    assert read(Control, arguments, optional=True) == Control()
    assert read(Since, arguments, optional=True).since == 0


@pytest.mark.parametrize(
    "arguments", [["x"], [{"since": -1}], [{"limit": 0}], [{"limit": 1_001}], [{"since": "x"}], [1, 2]]
)
def test_a_query_for_events_is_checked_too(arguments: Sequence[Any]) -> None:
    with pytest.raises(Refused):
        read(Since, arguments, optional=True)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["stepId", "step_id", "by", "args", "version", "approved", "x"]), inner, max_size=4
        )
    ),
    max_leaves=5,
)


@given(kind=st.sampled_from([Approve, Deny, Decide, Control, Since]), arguments=st.lists(ANY, max_size=2))
def test_any_message_is_read_or_refused(kind: type[Value], arguments: list[Any]) -> None:
    outcome: Any
    try:
        outcome = read(kind, arguments, optional=issubclass(kind, Control | Since))
    except Refused as refusal:
        outcome = refusal.code
    assert isinstance(outcome, kind) or outcome in ("BAD_MESSAGE", "MESSAGE_TOO_LARGE")


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ("unpause", "plan 'p' is in review, not paused; `plan begin p` starts it"),
        ("pause", "plan 'p' is in review and does nothing until `plan begin p`"),
    ],
)
def test_a_refused_control_names_the_plan_and_the_command_that_is_meant(action: Any, says: str) -> None:
    schedule = Schedule(run_of(step("a")))
    schedule.review()
    schedule.run.plan = schedule.run.plan.model_copy(update={"id": "p"})
    with pytest.raises(Refused) as refused:
        check_control(schedule.run, action)
    assert refused.value.message == says


def test_a_digest_that_is_none_is_refused_in_plain_words() -> None:
    with pytest.raises(Refused, match=r"^digest: it has 64 digits, 0-9 and a-f; `plan pending --json` shows it;"):
        read(Decide, [{"stepId": "a", "approved": True, "digest": "deadbeef"}])
