"""`plan schedule ...` from the command line: what it prints, and its exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from plansurvive.client.cli.app import run
from tests.client.cli.command import Ended, plan, written
from tests.kit.waiting import until

PLAN = {"title": "Look", "steps": [{"id": "a", "tool": "list_directory", "args": {"path": "."}}]}
ASKS = {"steps": [
    {"id": "w", "tool": "write_file", "args": {"path": "report.md", "content": "x"}},
    {"id": "d", "tool": "delete_file", "args": {"path": "old"}},
]}  # fmt: skip


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_schedule_shows_what_its_runs_await_as_the_list_of_plans_does(
    environ: dict[str, str], worker: Worker, tmp_path: Path, queue: str
) -> None:
    step = {"id": "pack", "tool": "run_command", "args": {"command": "true"}, "requiresApproval": True}
    file, name = written(tmp_path / "asks.json", {"steps": [step]}), f"asks-{queue}"
    made = await plan(environ, "schedule", "create", name, file, "--cron", "0 7 * * *")
    assert made.code == 0, made.err
    try:
        started = (await plan(environ, "schedule", "trigger", name, "--json")).json["planId"]

        async def asks() -> Any:
            return (await plan(environ, "pending", started, "--json")).json

        await until(asks, "its run asks")
        shown = (await plan(environ, "schedule", "show", name)).out
        assert "0/1" in shown
        assert "approval of pack" in shown
        assert f"Next: plan pending {started}" in shown
        assert (await plan(environ, "cancel", started)).code == 0
    finally:
        await plan(environ, "schedule", "delete", name)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_schedule_from_its_creation_to_its_end(
    environ: dict[str, str], worker: Worker, tmp_path: Path, queue: str
) -> None:
    file, name = written(tmp_path / "look.json", PLAN), f"look-{queue}"

    async def schedule(verb: str, *arguments: str, code: int = 0) -> Ended:
        ended = await plan(environ, "schedule", verb, *([] if verb == "list" else [name]), *arguments)
        assert ended.code == code, ended.err
        return ended

    made = await schedule("create", file, "--cron", "0 7 * * mon-fri", "--timezone", "Europe/Berlin", "--note", "early")
    assert f"schedule {name}: at 07:00 on Monday to Friday, Europe/Berlin" in made.out
    try:
        assert made.out.count("07:00 CE") == 5
        assert "SCHEDULE_EXISTS" in (await schedule("create", file, "--every", "1h", code=2)).err
        started = (await schedule("trigger", "--json")).json["planId"]

        async def runs() -> Any:
            return (await plan(environ, "list", "--schedule", name, "--json")).json

        await until(lambda: _completed(runs), "the run has ended")
        assert [each["planId"] for each in await runs()] == [started]
        shown = (await schedule("show")).out
        assert all(text in shown for text in ("when       at 07:00 on Monday", "early", started, "completed", "CE"))
        assert "plan       1 step, from" in shown
        assert name in (await schedule("list")).out
        assert (await schedule("pause", "--note", "holidays", "--json")).json == {"name": name, "paused": True}
        assert "paused     holidays" in (await schedule("show")).out
        await schedule("resume")
        assert "every 2 hours" in (await schedule("update", "--every", "2h")).out
        none = await schedule("backfill", "--from", "2026-01-01T00:30", "--to", "2026-01-01T01:30", "--json")
        assert none.json == {"name": name, "times": []}
        found = (await schedule("show", "--json")).json
        assert (found["when"], found["timezone"], found["paused"]) == (["every 2 hours"], "UTC", False)
    finally:
        await schedule("delete")
    assert "SCHEDULE_NOT_FOUND" in (await schedule("show", code=4)).err
    assert "No runs of schedule nothing" in (await plan(environ, "list", "--schedule", "nothing")).err


async def test_a_schedule_whose_runs_will_wait_for_a_person_is_created_with_a_warning(
    environ: dict[str, str], worker: Worker, tmp_path: Path, queue: str
) -> None:
    file, name = written(tmp_path / "asks.json", ASKS), f"asks-{queue}"
    made = await plan(environ, "schedule", "create", name, file, "--every", "300d", "--paused")
    await plan(environ, "schedule", "delete", name)
    assert made.code == 0
    assert "A run will wait until a person has decided" in made.err
    assert "d: delete_file needs approval by default" in made.out
    assert "Will ask in later runs (1)\n  w: writes over report.md" in made.out
    yes = await plan(environ, "schedule", "create", name, file, "--every", "300d", "--paused", "--yes", "--json")
    await plan(environ, "schedule", "delete", name)
    assert yes.json["asks"] == []
    assert yes.json["approveAll"] is True


async def test_a_schedule_carries_the_version_of_a_template_that_was_the_newest_when_it_was_made(
    environ: dict[str, str], worker: Worker, tmp_path: Path, queue: str
) -> None:
    name = f"named-{queue}"
    for text in ("first", "second"):
        steps = [{"id": "note", "tool": "list_directory", "args": {"path": "."}, "description": text}]
        data = {"title": "Notes", "inputs": {"who": {"type": "string"}}, "steps": steps}
        saved = await plan(environ, "template", "save", "notes", written(tmp_path / "notes.json", data), "--json")
    times = ("--every", "300d", "--paused")
    missing = await plan(environ, "schedule", "create", name, "--template", "notes", *times)
    assert (missing.code, "MISSING_INPUT" in missing.err) == (2, True)
    made = await plan(environ, "schedule", "create", name, "--template", "notes", "--input", "who=ann", *times)
    try:
        assert made.code == 0, made.err
        shown = (await plan(environ, "schedule", "show", name, "--json")).json
        assert (shown["source"], shown["title"]) == (f"notes@{saved.json['hash'][:12]}", "Notes")
        assert shown["plan"]["steps"][0]["description"] == "second"
        started = (await plan(environ, "schedule", "trigger", name, "--json")).json["planId"]
        assert (await plan(environ, "watch", started)).code == 0
    finally:
        await plan(environ, "schedule", "delete", name)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["s", "--every", "1h"], "BAD_USAGE"),
        (["s", "FILE", "--template", "t", "--every", "1h"], "BAD_USAGE"),
        (["s", "--template", "no_such", "--every", "1h"], "UNKNOWN_TEMPLATE"),
        (["s", "FILE"], "BAD_SCHEDULE"),
        (["s", "FILE", "--cron", "0 7"], "BAD_SCHEDULE"),
        (["s", "FILE", "--every", "1h", "--timezone", "Nowhere"], "BAD_SCHEDULE"),
        (["s", "FILE", "--every", "0s"], "BAD_SCHEDULE"),
        (["s", "FILE", "--every", "1h", "--overlap", "maybe"], "BAD_SCHEDULE"),
        (["plan-s", "FILE", "--every", "1h"], "BAD_SCHEDULE"),
        (["s", "FILE", "--every", "1h", "--input", "x=1"], "UNKNOWN_INPUT"),
        (["s", "BAD", "--every", "1h"], "UNKNOWN_TOOL"),
    ],
)
async def test_mistakes_are_found_before_any_server_is_asked(tmp_path: Path, arguments: list[str], code: str) -> None:
    bad = {"steps": [{"id": "a", "tool": "no_such_tool", "args": {}}]}
    files = {"FILE": written(tmp_path / "a.json", PLAN), "BAD": written(tmp_path / "b.json", bad)}
    given = [files.get(each, each) for each in arguments]
    offline = {"TEMPORAL_ADDRESS": "127.0.0.1:1", "HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path / "state")}
    ended = await plan(offline, "schedule", "create", *given)
    if code == "UNKNOWN_TOOL":  # a worker elsewhere may have the tool: only the server could tell
        assert ended.code == 3
    else:
        assert (ended.code, code in ended.err) == (2, True), ended.err


def test_the_group_has_help_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f" {verb} " in shown for verb in ("create", "update", "list", "show", "trigger", "pause", "backfill"))


async def _completed(runs: Any) -> bool:
    found = await runs()
    return bool(found) and found[0]["status"] == "completed"
