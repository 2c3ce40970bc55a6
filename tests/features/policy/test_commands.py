"""Commands of real shells against ten rules: what each is judged to be was written down beforehand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from plansurvive.features.policy.judging import Asker, Judged, judge
from plansurvive.features.policy.policy_file import read
from plansurvive.features.policy.rule import Policy
from plansurvive.features.policy.shell_words import MAX_CHARACTERS, commands_of

HERE = Path(__file__).parent
ROWS = [
    line.split(" ", 1)
    for line in (HERE / "commands.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
PAIRS = [(verdict, json.loads(text)) for verdict, text in ROWS]


@pytest.fixture(scope="module")
def policy() -> Policy:
    found = read((HERE / "rules.toml").read_text("utf-8"), datetime.now(UTC)).policy
    assert found is not None
    assert len(found.rules) == 10
    return found


def of_command(policy: Policy, command: str, **args: object) -> str:
    return judge(policy, Judged("run_command", {"command": command, **args}, "command", asker=Asker())).decide or "none"


def test_there_are_two_hundred_commands_or_more_each_once() -> None:
    assert len(PAIRS) >= 200
    assert len({command for _, command in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize(("verdict", "command"), PAIRS)
def test_a_command_is_judged_as_it_was_written_down(policy: Policy, verdict: str, command: str) -> None:
    assert of_command(policy, command) == verdict


def test_nothing_is_allowed_that_should_ask_or_be_denied(policy: Policy) -> None:
    assert [
        command for verdict, command in PAIRS if verdict != "allow" and of_command(policy, command) == "allow"
    ] == []


def test_another_rule_that_asks_beats_the_command(policy: Policy) -> None:
    assert of_command(policy, "git status", network=True) == "ask"
    assert of_command(policy, "rm a", network=True) == "deny"


@pytest.mark.parametrize("text", ["ls " * MAX_CHARACTERS, "(" * 5_000 + "ls" + ")" * 5_000, "$(" * 5_000, "'" * 9_999])
def test_a_huge_or_deep_command_is_not_known(text: str) -> None:
    assert commands_of(text).why


def test_a_lone_surrogate_is_not_known() -> None:
    assert commands_of("ls \ud800").why
