"""The examples, started on this machine and run by the stack: their files are those expected, and the worker's."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.compose.host_audit import Audit
from tests.compose.stack import OWNER, Stack

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ENDS = {"build-and-test": 0, "csv-cleanup": 0, "map-files": 0, "rollback": 1, "sub-plans": 0}
"""The examples that ask nobody, with the exit codes of `plan run`."""


MADE = {"build-and-test": "out"}
"""Where an example's files are, if not beside its plan."""


def copied(stack: Stack, example: str) -> Path:
    """An example with its data in the workspace, for the worker's user."""
    target = stack.workspace / example
    shutil.copytree(EXAMPLES / example, target, ignore=shutil.ignore_patterns("expected"))
    stack.own(target)
    return target


def made_by(stack: Stack, script: str, name: str) -> Path:
    """The directory that an example's script sets up in the workspace."""
    subprocess.run(["sh", str(EXAMPLES / script), str(stack.workspace / name)], check=True)
    stack.own(stack.workspace / name)
    return stack.workspace / name


def assert_as_expected(example: str, copy: Path, made: Path | None = None) -> None:
    """Every file in the example's `expected` directory was made, byte for byte, by the worker's user."""
    expected = EXAMPLES / example / "expected"
    files = [path.relative_to(expected) for path in expected.rglob("*") if path.is_file()]
    assert files
    for file in files:
        assert ((made or copy) / file).read_bytes() == (expected / file).read_bytes(), file
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in copy.rglob("*")} == {(OWNER, OWNER)}


@pytest.mark.parametrize("example", ENDS)
async def test_an_example_gives_the_expected_files(stack: Stack, example: str) -> None:
    made = copied(stack, example)
    ended = await stack.plan("run", EXAMPLES / example / "plan.yaml", "--workspace", f"/workspace/{example}")
    assert ended.code == ENDS[example], ended.out + ended.err
    assert_as_expected(example, made, made / MADE.get(example, "."))


async def test_inputs_reach_a_plan(stack: Stack) -> None:
    made = copied(stack, "new-project")
    given = ("--input", "name=comet", "--input", 'authors=["Ada Berg", "Ben Okafor"]', "--input", "license=none")
    plan = EXAMPLES / "new-project/plan.json"
    ended = await stack.plan("run", plan, "--workspace", "/workspace/new-project", *given)
    assert ended.code == 0, ended.out + ended.err
    assert_as_expected("new-project", made)


async def test_a_person_approves_on_this_machine_and_the_worker_deletes(stack: Stack) -> None:
    mess = made_by(stack, "risky-cleanup/make_mess.sh", "mess")
    plan = EXAMPLES / "risky-cleanup/plan.yaml"
    running = asyncio.create_task(stack.plan("run", plan, "--workspace", "/workspace/mess", "--id", "mess"))
    await stack.until_asked("mess")
    assert (mess / "cache/map tiles.tmp").exists()
    approved = await stack.plan("approve", "mess", "remove", "--by", "ann")
    assert approved.code == 0, approved.out + approved.err
    ended = await running
    assert ended.code == 0, ended.out + ended.err
    assert not (mess / "cache/map tiles.tmp").exists()
    assert_as_expected("risky-cleanup", mess)


async def test_questions_are_answered_and_events_arrive(stack: Stack) -> None:
    made = copied(stack, "questions")
    plan = EXAMPLES / "questions/plan.yaml"
    running = asyncio.create_task(stack.plan("run", plan, "--workspace", "/workspace/questions"))
    await stack.until_asked("newsletter")
    for arguments in (
        ("answer", "newsletter", "audience", "colleagues"),
        ("answer", "newsletter", "details", '{"copies": 20, "signature": "Ann"}'),
        ("event", "newsletter", "print.finished", "--data", '{"job": "letter", "pages": 3}'),
    ):
        done = await stack.plan(*arguments)
        assert done.code == 0, done.out + done.err
    ended = await running
    assert ended.code == 0, ended.out + ended.err
    assert_as_expected("questions", made)


async def test_commands_reach_nothing_but_the_workspace(stack: Stack, audit: Audit) -> None:
    made = stack.workspace / "attempts"
    made.mkdir()
    (made / "out").symlink_to(audit.outside)
    stack.own(made)
    places = [
        "/",
        "/app",
        "/etc",
        "/usr/bin",
        "/var/lib",
        "/home",
        "/etc/plans",
        str(audit.outside),
        "out",
        "../../outside",
    ]
    script = "; ".join(f"(echo mine > {place}/mine.txt) 2>/dev/null && echo wrote to {place}" for place in places)
    written = {"path": "out/mine.txt", "content": "mine"}
    attempts: list[dict[str, Any]] = [
        {"id": "try", "tool": "run_command", "args": {"command": f"{script}; echo done; touch here"}},
        {"id": "write", "tool": "write_file", "args": written},
    ]
    steps = [{**step, "requiresApproval": False} for step in attempts]
    plan = await stack.start({"title": "Attempts", "workspace": "/workspace/attempts", "steps": steps})
    assert await stack.until_ended(plan) == "partial"
    shown = {step["id"]: step for step in (await stack.plan("show", plan, "--json", "--full")).json["steps"]}
    assert shown["try"]["result"]["value"]["stdout"].strip() == "done"
    assert shown["write"]["status"] == "failed"
    assert (made / "here").exists()
    assert [path.name for path in audit.outside.iterdir()] == ["theirs.txt"]
