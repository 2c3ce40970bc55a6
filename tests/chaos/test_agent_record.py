"""Each rule about a coding agent's work finds what it is there to find, in a record that is good but for one thing."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.agent_record import ASKS, CONTINUE, LATE, REQUEST, Record, findings


def prompt(text: str, session: str = "s") -> dict[str, Any]:
    """The agent is sent a request."""
    return {"method": "session/prompt", "params": {"sessionId": session, "prompt": [{"text": text}]}}


def given(method: str, of: str, answer: Any) -> dict[str, Any]:
    """The agent gets an answer."""
    return {"to": method, "of": of, "answer": answer}


def command(name: str, line: str, status: str = "completed", code: str = "") -> dict[str, Any]:
    """A step that is a command."""
    result = {"code": code} if code else {"value": {"exitCode": 0}}
    args = {"command": f"sleep 0.1; echo {line} >> ran.txt"}
    return {"id": name, "tool": "run_command", "args": args, "status": status, "result": result}


def permission(name: str, title: str, status: str = "completed", **more: str) -> dict[str, Any]:
    """A step that asked a person."""
    return {"id": name, "tool": ASKS, "args": {"title": title, **more}, "status": status, "result": {}}


AGAIN = {"again": "this was allowed before, and may have happened already"}
FIRST, LOST = command("p1", "one"), command("p2", "two", "failed", "OUTCOME_UNKNOWN")
YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}
GOOD = Record(
    transcript=[
        prompt(REQUEST),
        given("fs/write_text_file", "a.txt", None),
        given("terminal/create", FIRST["args"]["command"], {"terminalId": "p1"}),
        given("terminal/wait_for_exit", "p1", {"exitCode": 0}),
        given("session/request_permission", "own", YES),
        prompt(f"{CONTINUE}\n\nThis did not end by itself: {LOST['args']['command']} (OUTCOME_UNKNOWN)."),
        given("session/request_permission", "own", YES),
    ],
    ledger=[FIRST, LOST, permission("p3", "own"), permission("p4", "own", **AGAIN)],
    lines=["one", "two"],
    code="",
    kills=0,
    restarts=0,
    files={"a.txt"},
)


def with_transcript(*more: dict[str, Any], without: int | None = None) -> Record:
    """With more in what the agent has received, or less."""
    return replace(GOOD, transcript=[*(each for n, each in enumerate(GOOD.transcript) if n != without), *more])


def with_step(changed: dict[str, Any]) -> Record:
    """With a step that is otherwise, or one more."""
    return replace(GOOD, ledger=[*(each for each in GOOD.ledger if each["id"] != changed["id"]), changed])


WRONG: dict[str, tuple[str, Callable[[], Record]]] = {
    "the request is sent again": ("request_is_sent_once", lambda: with_transcript(prompt(REQUEST))),
    "the request never comes": (
        "request_is_sent_once", lambda: replace(GOOD, transcript=[prompt(CONTINUE), *GOOD.transcript[1:]])
    ),
    "another request follows": ("request_is_sent_once", lambda: with_transcript(prompt("Do more."))),
    "a second session": ("request_is_sent_once", lambda: with_transcript(prompt(CONTINUE, "t"))),
    "a command runs twice": ("commands_run_once", lambda: replace(GOOD, lines=["one", "one", "two"])),
    "a command runs unrecorded": ("commands_run_once", lambda: replace(GOOD, lines=["one", "two", "three"])),
    "a completed command did not run": ("commands_run_once", lambda: replace(GOOD, lines=["two"])),
    "a denied command runs": ("commands_run_once", lambda: with_step(command("p2", "two", "skipped"))),
    "a command fails otherwise": ("commands_run_once", lambda: with_step(command("p2", "two", "failed", "INTERNAL"))),
    "it is asked as if for the first time": (
        "what_may_have_happened_says_so", lambda: with_step(permission("p4", "own"))
    ),
    "it is said to have happened, and was not allowed": (
        "what_may_have_happened_says_so", lambda: with_step(permission("p5", "other", **AGAIN))
    ),
    "a command that was lost is not told": ("commands_are_told", lambda: with_transcript(prompt(CONTINUE), without=5)),
    "an answer that no decision gave": (
        "transcript_is_ledger", lambda: with_transcript(given("session/request_permission", "own", YES))
    ),
    "a denial comes as permission": (
        "transcript_is_ledger", lambda: with_step(permission("p4", "own", "skipped", **AGAIN))
    ),
    "a terminal that is another command": (
        "transcript_is_ledger", lambda: with_transcript(given("terminal/create", "x", {"terminalId": "p1"}))
    ),
    "another exit code": (
        "transcript_is_ledger", lambda: with_transcript(given("terminal/wait_for_exit", "p1", {"exitCode": 1}))
    ),
    "it is given up too early": ("it_survives", lambda: replace(GOOD, code="AGENT_ENDED", kills=2)),
    "it fails otherwise": ("it_survives", lambda: replace(GOOD, code="AGENT_LOST", kills=3)),
    "a file that is not known": ("files_are_known", lambda: replace(GOOD, files=set())),
}  # fmt: skip


@pytest.mark.parametrize("request_text", [REQUEST, LATE])
def test_a_good_record_has_no_findings(request_text: str) -> None:
    assert findings(replace(GOOD, transcript=[prompt(request_text), *GOOD.transcript[1:]])) == []


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_found_by_its_rule(wrong: str) -> None:
    rule, made = WRONG[wrong]
    before = deepcopy(GOOD)
    assert {each.partition(":")[0] for each in findings(made())} == {rule}
    assert before == GOOD
