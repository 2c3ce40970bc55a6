"""`plan show`, `plan list` and `plan watch` after decisions: what a person learns, and what to do next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from tests.client.cli.command import plan, written
from tests.kit.waiting import until

WRITE: dict[str, Any] = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}}
SAY: dict[str, Any] = {"id": "say", "description": "Say hi", "tool": "run_command", "args": {"command": "echo hi"}}
LAST: dict[str, Any] = {"id": "last", "tool": "delete_file", "args": {"path": "a.txt"}, "dependsOn": ["say", "write"]}

Environ = dict[str, str]


async def asked(environ: Environ, directory: Path, *steps: dict[str, Any], **more: Any) -> str:
    """Start a plan of these steps, until one awaits approval; returns its id."""
    file = written(directory / "plan.json", {"title": "A test", "steps": list(steps), **more})
    name = str((await plan(environ, "start", file, "--json")).json["planId"])
    await until_pending(environ, name)
    return name


async def until_pending(environ: Environ, name: str, *step: str) -> None:
    async def is_asked() -> bool:
        return bool((await plan(environ, "pending", name, *step, "--json")).json)

    await until(is_asked, "a person is asked")


async def test_a_person_sees_what_happened_who_decided_and_what_to_do_next(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    name = await asked(environ, tmp_path, WRITE, SAY, LAST, taskId="task-7")
    shown = (await plan(environ, "show", name)).out
    assert f"Next: plan pending {name}" in shown
    assert "  [?] say: Say hi" in shown
    changed = json.dumps({"command": "echo edited"})
    approved = await plan(environ, "approve", name, "say", "--by", "ann", "--comment", "better", "--args", changed)
    rows = approved.err.splitlines()
    assert rows.index("command      │ echo hi") < rows.index("With these arguments instead:")
    assert "command      │ echo edited" in rows[rows.index("With these arguments instead:") :]
    await until_pending(environ, name, "last")
    await plan(environ, "deny", name, "last", "--by", "bob", "--comment", "keep it")
    watched = await plan(environ, "watch", name)
    assert watched.code == 1, "a denied last step is not success"
    for row in ("! partial   2 of 3 steps", "denied   last: User denied approval by bob: keep it"):
        assert row in watched.out
    assert f"next     plan resume {name}   runs what is not done and asks again about what was denied" in watched.out
    numbered = (await plan(environ, "show", name, "--numbered")).out.splitlines()
    assert (numbered[:4], numbered[4]) == (["Plan: A test", "=" * 40, "Progress: 2/3 (66.7%)", ""], "Steps:")
    assert [row for row in numbered if ": [" in row] == [
        "  0: [✓] write", "  1: [✓] Say hi", "  2: [-] last"
    ], numbered  # fmt: skip
    ended = (await plan(environ, "show", name)).out.splitlines()
    assert ended[:5] == [
        *("Plan: A test", "=" * 40, "Progress: 2/3 (66.7%)"),
        *(f"Id: {name}, version 2, task task-7", "Status: partial: 2 completed, 1 denied"),
    ]
    for part in (
        "  [✓] write · completed in",
        "      Files: a.txt",
        '      Value: {"path": "a.txt", "bytes": 5, "created": true}',
        "  [✓] say: Say hi · completed in",
        "      Approved: by ann, ",
        "with changed arguments: better",
        "edited",
        "  [-] last · denied",
        "      Denied: by bob, ",
        "keep it",
        f"Next: plan resume {name}",
    ):
        assert any(part in row for row in ended), part
    one = (await plan(environ, "show", name, "say")).out.splitlines()
    assert one[0].startswith("say: Say hi · completed in ")
    for part in (
        *('  Args: {"command": "echo edited"}', "  Times: started ", "  Attempt: run_command, "),
        "  Approved: by ann, ",
    ):
        assert any(row.startswith(part) for row in one), (part, one)
    assert any(row.endswith("with changed arguments: better") for row in one)
    denied = (await plan(environ, "show", name, "last")).out
    assert "  Depends on: say, write" in denied
    assert "  Denied: by bob, " in denied


async def test_who_comes_late_is_told_what_was_asked_then_and_what_was_made_of_it(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    name = await asked(environ, tmp_path, SAY)
    changed = json.dumps({"command": "echo edited"})
    await plan(environ, "approve", name, "say", "--by", "ann", "--comment", "better", "--args", changed)
    await plan(environ, "watch", name)
    late = (await plan(environ, "watch", name)).out
    order = [
        "awaiting approval:",
        "command      │ echo hi",
        'changed its arguments: ~ say.args.command: "echo hi" -> "echo edited"',
        "approved by ann with changed arguments: better",
        "completed in",
    ]
    assert [late.find(part) for part in order] == sorted(late.find(part) for part in order)
    assert -1 not in [late.find(part) for part in order], late
    assert late.count("ready") == 0
    events = [json.loads(row) for row in (await plan(environ, "watch", name, "--json")).out.splitlines()]
    assert [event["awaiting"] for event in events if "awaiting" in event] == ["approval"]
    assert events[-1]["result"]["value"]["stdout"] == "edited\n"


@pytest.mark.slow
async def test_the_list_names_task_and_creation_of_a_plan_and_of_the_run_that_resumes_it(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    miss = {"id": "miss", "tool": "read_file", "args": {"path": "nope"}}
    file = written(tmp_path / "plan.json", {"steps": [miss], "createdAt": "2025-12-24T18:00:00Z", "taskId": "task-8"})
    name = str((await plan(environ, "start", file, "--json")).json["planId"])
    assert (await plan(environ, "watch", name)).code == 1
    later = str((await plan(environ, "resume", name, "--json")).json["planId"])
    await plan(environ, "watch", later)
    for each in (name, later):
        view = (await plan(environ, "show", each, "--json")).json
        found = (await plan(environ, "summary", each, "--json")).json
        assert (view["taskId"], view["createdAt"]) == ("task-8", "2025-12-24T18:00:00Z")
        assert (found["taskId"], found["createdAt"]) == ("task-8", "2025-12-24T18:00:00Z")

    async def listed() -> bool:
        rows = (await plan(environ, "list", "--limit", "1000", "--json")).json
        own = {row["planId"]: (row["taskId"], row["createdAt"]) for row in rows}
        return all(own.get(each) == ("task-8", "2025-12-24T18:00:00Z") for each in (name, later))

    await until(listed, "both are in the list")
    shown = (await plan(environ, "show", name)).out
    assert f"Next: plan show {later}" in shown
    assert f"Next: plan rerun {later} --from miss" in (await plan(environ, "show", later)).out


async def test_a_skip_that_blocks_a_step_is_warned_about(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    use = {**WRITE, "id": "use", "args": {"path": "b.txt", "content": "$say.stdout"}}
    name = await asked(environ, tmp_path, SAY, use)
    skipped = await plan(environ, "skip", name, "say")
    assert (skipped.code, skipped.err.strip()) == (
        0,
        "Warning: 'use' uses the value of 'say', which is skipped: permanently blocked unless changed",
    )
    assert (await plan(environ, "watch", name)).code == 1


async def test_of_a_call_with_other_arguments_the_file_is_compared_that_these_name(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    for name in ("c.log", "d.log"):
        (tmp_path / name).write_text(f"content of {name}\n")
    remove = {"id": "remove", "tool": "delete_file", "args": {"path": "c.log"}}
    name = await asked(environ, tmp_path, remove, workspace=str(tmp_path))
    approved = await plan(environ, "approve", name, "remove", "--args", '{"path": "d.log"}')
    before, _, instead = approved.err.partition("With these arguments instead:")
    assert "file now" not in before
    for row in ("path         │ d.log", "file now     │ 'd.log' would be deleted", "change diff  │ -content of d.log"):
        assert row in instead
