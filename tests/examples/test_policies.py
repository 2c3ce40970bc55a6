"""The policies to start from: each is read without a mistake or a warning, and decides as its comments say."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from plansurvive.features.policy.judging import Asker, Judged, judge
from plansurvive.features.policy.policy_file import read
from plansurvive.features.policy.rule import Policy

FOLDER = Path(__file__).parents[2] / "examples" / "policies"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
PERSON, AGENT = "person", "agent"


def policy(name: str) -> Policy:
    found = read((FOLDER / f"{name}.toml").read_text("utf-8"), datetime.now(UTC))
    assert not found.mistakes
    assert not found.warnings
    assert found.policy is not None
    return found.policy


def decided(name: str, tool: str, origin: str = PERSON, **args: Any) -> tuple[str, tuple[str, ...]]:
    paths = {key: args[key] for key in ("path",) if key in args}
    call = Judged(
        tool, args, "command" if tool == "run_command" else "", paths, asker=Asker(("p",), "ann", False, origin)
    )
    found = judge(policy(name), call)
    return found.decide, found.rules


def run(command: str) -> dict[str, Any]:
    return {"command": command}


@pytest.mark.parametrize("name", NAMES)
def test_it_has_no_mistake_and_says_first_what_it_is_for(name: str) -> None:
    assert policy(name).rules
    assert (FOLDER / f"{name}.toml").read_text("utf-8").startswith("# ")


@pytest.mark.parametrize(
    ("name", "tool", "args", "origin", "verdict"),
    [
        ("reads-only", "read_file", {"path": "a.txt"}, PERSON, "allow"),
        ("reads-only", "find_files", {"pattern": "*"}, AGENT, "allow"),
        ("reads-only", "write_file", {"path": "a.txt"}, PERSON, "deny"),
        ("reads-only", "run_command", run("ls"), PERSON, "deny"),
        ("reads-only", "http_request", {"url": "https://example.org"}, PERSON, "deny"),
        ("reads-only", "tracker.close", {}, PERSON, "deny"),
        ("this-repository", "read_file", {"path": "a.txt"}, PERSON, "allow"),
        ("this-repository", "write_file", {"path": "src/a/b.py"}, AGENT, "allow"),
        ("this-repository", "write_file", {"path": "a.py"}, AGENT, ""),
        ("this-repository", "write_file", {"path": ".git/config"}, PERSON, "deny"),
        ("this-repository", "edit_file", {"path": ".github/workflows/ci.yml"}, PERSON, "ask"),
        ("this-repository", "run_command", run("git diff && pytest -q"), AGENT, "allow"),
        ("this-repository", "run_command", run("git commit -m x"), PERSON, "ask"),
        ("this-repository", "run_command", run("git status; curl example.org"), PERSON, ""),
        ("night-without-people", "write_file", {"path": "reports/today.md"}, PERSON, "allow"),
        ("night-without-people", "run_command", run("make test"), PERSON, "allow"),
        ("night-without-people", "run_command", run("make test && git push origin main"), PERSON, "deny"),
        ("night-without-people", "delete_file", {"path": "a"}, PERSON, "deny"),
        ("night-without-people", "run_command", run("make install"), PERSON, ""),
        ("ci", "run_command", run("make check"), PERSON, "allow"),
        ("ci", "run_command", run("make check"), "llm", "deny"),
        ("ci", "run_command", run("git push"), PERSON, "deny"),
        ("ci", "write_file", {"path": "dist/a.whl"}, PERSON, "allow"),
        ("ci", "write_file", {"path": "src/a.py"}, AGENT, "deny"),
        ("agents-under-supervision", "read_file", {"path": "a"}, AGENT, "allow"),
        ("agents-under-supervision", "agent", {"objective": "x"}, PERSON, "ask"),
        ("agents-under-supervision", "write_file", {"path": "a"}, AGENT, "ask"),
        ("agents-under-supervision", "write_file", {"path": "a"}, PERSON, ""),
        ("agents-under-supervision", "run_command", run("make"), AGENT, "ask"),
        ("agents-under-supervision", "run_command", run("make; sudo make install"), AGENT, "deny"),
        ("release-by-two", "run_command", run("git push origin main"), PERSON, "ask"),
        ("release-by-two", "run_command", run("make && git tag v1"), AGENT, "ask"),
        ("release-by-two", "run_command", run("make"), PERSON, ""),
        ("nothing-at-all", "read_file", {"path": "a"}, PERSON, "deny"),
        ("nothing-at-all", "plan", {}, PERSON, "deny"),
    ],
)
def test_it_decides_as_it_says(name: str, tool: str, args: dict[str, Any], origin: str, verdict: str) -> None:
    assert decided(name, tool, origin, **args)[0] == verdict


def test_each_of_them_is_tried_here() -> None:
    assert set(NAMES) == {"reads-only", "this-repository", "release-by-two", "night-without-people", "ci",
                          "agents-under-supervision", "nothing-at-all"}  # fmt: skip


def test_of_agents_a_judge_may_settle_commands_alone() -> None:
    found = policy("agents-under-supervision")
    assert [each.rule.name for each in found.rules if each.rule.judge] == ["commands of agents"]


def test_a_release_takes_two_others() -> None:
    [each] = policy("release-by-two").rules
    assert (each.rule.count, each.rule.not_author, each.rule.by) == (2, True, ("group:release",))
