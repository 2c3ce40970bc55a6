"""The report: what came of calls by rule, what another policy would have said, and what it proposes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.features.policy.judging import Judged, judge
from plansurvive.features.policy.policy_file import read
from plansurvive.features.policy.reporting import (
    Call,
    Outcome,
    Seen,
    as_file,
    in_words,
    judged_of,
    outcome_of,
    proposals,
    report,
)
from plansurvive.features.policy.rule import Policy

NOW = datetime(2026, 11, 28, tzinfo=UTC)


def call(tool: str, outcome: Outcome, *, rules: tuple[str, ...] = (), by: str = "ann", **args: Any) -> Call:
    seen = Seen(plan="p", step="s", tool=tool, outcome=outcome, rules=list(rules), by=[by] if by else [], time=NOW)
    return seen, judged_of(tool, args, "command" if tool == "run_command" else "", frozenset())


def commands(outcome: Outcome, *texts: str) -> list[Call]:
    return [call("run_command", outcome, command=text) for text in texts]


def of(text: str) -> Policy:
    found = read(text, NOW).policy
    assert found is not None
    return found


def proposed(*calls: Call) -> list[str]:
    return [each.rule for each in proposals(calls)]


def test_calls_are_counted_by_rule_and_outcome() -> None:
    calls = [call("a", "allowed", rules=("x",)), call("a", "approved", rules=("x", "y")), call("b", "unruled")]
    found = report(calls, NOW, 2)
    assert [(each.rule, each.outcomes) for each in found.rules] == [
        ("x", {"allowed": 1, "approved": 1}), ("y", {"approved": 1}), ("", {"unruled": 1}),
    ]  # fmt: skip
    text = "\n".join(in_words(found))
    assert "3 calls in 2 plans" in text
    assert "x: 1 allowed, 1 approved" in text
    assert "(no rule): 1 without a rule" in text


def test_what_people_always_approved_is_proposed_as_narrowly_as_it_was_seen() -> None:
    same = commands("approved", *["make test"] * 3)
    assert proposed(*same) == [
        '[[rule]]\nname = "run_command: make test"\ntool = "run_command"\ncommand = ["make test"]\ndecide = "allow"\n'
    ]
    various = commands("approved", "git log -n 1", "git log --oneline", "git log src")
    assert ['command = ["git log *"]' in each for each in proposed(*various)] == [True]
    files = [call("write_file", "approved", path=f"docs/{name}.md") for name in "abc"]
    assert ['args.path = "docs/**"' in each for each in proposed(*files)] == [True]
    requests = [
        call("http_request", "approved", url=f"https://api.example.org/{name}", method="POST") for name in "abc"
    ]
    [rule] = proposed(*requests)
    assert 'host = "api.example.org"\nargs.method = "POST"' in rule


@pytest.mark.parametrize(
    "calls",
    [
        commands("approved", "make test", "make test"),
        [*commands("approved", *["make test"] * 3), *commands("denied", "make test")],
        [*commands("approved", "git log -n 1", "git log a", "git log b"), *commands("denied", "git log c")],
        commands("allowed", *["make test"] * 3),
        commands("unanswered", *["make test"] * 3),
        commands("approved", *["make $TARGET"] * 3),
        commands("approved", *["bash -c 'make test'"] * 3),
        commands("approved", *["rm *.o"] * 3),
        [call("write_file", "approved", path="../a.txt") for _ in range(3)],
        [call("write_file", "approved", path="/etc/passwd") for _ in range(3)],
        [call("write_file", "approved", path="a[1].txt") for _ in range(3)],
        [call("http_request", "approved", url="https://user:x@example.org/") for _ in range(3)],
    ],
    ids=str,
)
def test_nothing_is_proposed_that_was_rare_denied_or_not_known(calls: list[Call]) -> None:
    assert proposed(*calls) == []


def test_a_proposal_allows_what_was_approved_and_nothing_that_was_denied() -> None:
    approved = commands("approved", "git log -n 1", "git log a", "git log b", "npm test", "npm test", "npm test")
    denied = commands("denied", "git push", "npm publish", "git log b; rm x")
    text = as_file(report([*approved, *denied], NOW, 1))
    policy = of(text)
    assert {judge(policy, judged).decide for _, judged in approved if judged} == {"allow"}
    assert "allow" not in {judge(policy, judged).decide for _, judged in denied if judged}
    assert "approved by ann" in text
    assert text.startswith("# Proposed from what people approved")


def test_another_policy_is_compared_call_by_call() -> None:
    other = of('[[rule]]\nname = "n"\ntool = "run_command"\ncommand = ["make *"]\ndecide = "allow"\n')
    calls = [*commands("approved", "make test"), *commands("unruled", "ls"), *commands("refused", "make x")]
    calls[0][0].rules.append("old")
    found = report(calls, NOW, 1, other).other
    assert found is not None
    assert (found.same, found.changed) == (1, {"ask -> allow": 1, "deny -> allow": 1})
    assert [(each.was, each.would, each.rules) for each in found.differences] == [
        ("ask", "allow", ["n"]), ("deny", "allow", ["n"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("decide", "code", "facts", "outcome"),
    [
        ("allow", "", {}, "allowed"), ("allow", "", {"judged": True}, "judged"),
        ("deny", "POLICY_DENIED", {}, "refused"),
        ("ask", "", {"approved": True}, "approved"), ("ask", "APPROVAL_REQUIRED", {"denied": True}, "denied"),
        ("ask", "APPROVAL_REQUIRED", {}, "pending"), ("ask", "APPROVAL_REQUIRED", {"ended": True}, "unanswered"),
        ("ask", "APPROVAL_REQUIRED", {"unanswered": True}, "unanswered"), ("", "", {}, "unruled"),
        ("", "", {"approved": True}, "approved"), ("ask", "", {"approved": True, "overridden": True}, "overridden"),
    ],
)  # fmt: skip
def test_what_came_of_a_call(decide: str, code: str, facts: dict[str, bool], outcome: str) -> None:
    known = {
        "judged": False,
        "denied": False,
        "approved": False,
        "overridden": False,
        "unanswered": False,
        "ended": False,
    }
    assert outcome_of(decide, code, **{**known, **facts}) == outcome


def test_arguments_that_are_not_known_are_not_judged_as_if_they_were() -> None:
    known = judged_of("run_command", {"command": "make"}, "command", frozenset({"command"}))
    assert isinstance(known, Judged)
    assert list(proposals([(call("run_command", "approved", command="make")[0], known)] * 3)) == []
