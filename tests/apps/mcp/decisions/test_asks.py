"""What a person is asked through an MCP client: all of the call, exactly; keys that name what is decided on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from mcp.types import ClientCapabilities

from plansurvive.apps.mcp.common.rules import Deciding, can_ask, may_ask
from plansurvive.apps.mcp.decisions.asks import KEY, MAX_CHARACTERS, ask_of, ask_to_begin
from plansurvive.client.verbs.pending import Pending

SINCE = datetime(2026, 11, 22, 12, tzinfo=UTC)
DIGEST = "a" * 64


def asked(**more: Any) -> Pending:
    """A call that awaits approval."""
    given = {
        "plan_id": "p", "step_id": "s", "kind": "approval", "tool": "shell", "args": {"command": "rm -r out"},
        "digest": DIGEST, "since": SINCE, "version": 3,
    }  # fmt: skip
    return Pending.model_validate(given | more)


def test_an_approval_shows_the_whole_call_and_nothing_is_chosen_beforehand() -> None:
    args = {"command": "rm -r out", "network": True}
    request = ask_of(asked(args=args, reasons=["it changes files"], queue="q")).request()
    assert request["method"] == "elicitation/create"
    params = request["params"]
    assert params["mode"] == "form"
    assert params["message"].startswith("Approve shell?\n")
    for shown in ("rm -r out", "it changes files", DIGEST, "network", "shell"):
        assert shown in params["message"]
    decision = params["requestedSchema"]["properties"]["decision"]
    assert [each["const"] for each in decision["oneOf"]] == ["approve", "deny", "later"]
    assert "default" not in decision
    assert params["requestedSchema"]["required"] == ["decision"]


def test_always_is_offered_only_with_its_scope() -> None:
    found = ask_of(asked(always="further calls of shell in /w")).schema["properties"]["decision"]["oneOf"]
    assert found[1]["const"] == "always"
    assert "further calls of shell in /w" in found[1]["title"]


def test_a_text_of_the_call_cannot_pose_as_another_row_or_hide() -> None:
    message = ask_of(asked(args={"command": "ls\ndigest       │ fake\n\u202eevil"})).message
    rows = message.split("\n")
    assert sum(row.startswith("digest") for row in rows) == 1
    assert "\u202e" not in message
    assert any(row.startswith("!") for row in rows)


def test_the_key_names_plan_step_kind_call_and_time_and_the_number_of_replies() -> None:
    first = ask_of(asked())
    others = [
        asked(plan_id="q"), asked(step_id="t"), asked(kind="recovery"), asked(digest="b" * 64),
        asked(since=SINCE.replace(minute=1)), asked(digest="", version=3), asked(digest="", version=4),
    ]  # fmt: skip
    bases = {ask_of(each).base for each in others} | {first.base}
    assert len(bases) == len(others) + 1
    assert first.key(0) != first.key(1)
    assert KEY.fullmatch(first.key(0))
    assert ask_of(asked()).key(0) == first.key(0)  # also of a server that was started later


def test_what_cannot_be_read_in_a_form_is_not_asked() -> None:
    assert ask_of(asked(args={"command": "x" * MAX_CHARACTERS})).is_too_long
    assert not ask_of(asked()).is_too_long


def test_a_question_is_a_form_of_its_answer_with_what_happens_when_nobody_answers() -> None:
    args = {"question": "Which port?", "schema": {"type": "integer"}, "timeout": 60, "onTimeout": "skip", "to": "ann"}
    ask = ask_of(asked(kind="question", tool="ask", args=args))
    assert "the step is skipped" in ask.message
    assert ask.schema["properties"]["answer"]["type"] == "integer"
    assert ask.base.startswith("question-")


def test_a_draft_is_begun_as_its_version_was_shown() -> None:
    ask = ask_to_begin("p", "t", 2, '{"steps": []}')
    assert ask.base != ask_to_begin("p", "t", 3, '{"steps": []}').base
    assert '{"steps": []}' in ask.message


@pytest.mark.parametrize(
    ("declared", "can"),
    [({}, False), ({"elicitation": {}}, True), ({"elicitation": {"form": {}}}, True),
     ({"elicitation": {"url": {}}}, False), ({"sampling": {}}, False)],
)  # fmt: skip
def test_a_client_asks_only_if_it_declared_forms(declared: dict[str, Any], can: bool) -> None:
    assert can_ask(ClientCapabilities.model_validate(declared)) is can
    assert not can_ask(None)


@pytest.mark.parametrize(
    ("deciding", "kinds"),
    [("here", ["approval", "question", "recovery", "review"]), ("questions", ["question"]), ("elsewhere", [])],
)
def test_the_operator_says_what_is_decided_through_clients(deciding: Deciding, kinds: list[str]) -> None:
    assert [kind for kind in ("approval", "question", "recovery", "review") if may_ask(deciding, kind)] == kinds
