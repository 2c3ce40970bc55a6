"""`plan run --dry-run`: what it says before a plan is started, that nothing was started, and that it came true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

from tests.client.cli.command import plan, written

Environ = dict[str, str]
READ = {"id": "read", "tool": "read_file", "args": {"path": "a.txt"}}
COPY = {"id": "copy", "tool": "write_file", "args": {"path": "b.txt", "content": "{{read}}"}}
EDIT = {"id": "edit", "tool": "edit_file", "args": {"path": "c.txt", "oldText": "2", "newText": "3"}}
LATER = {"id": "later", "tool": "edit_file", "args": {"path": "c.txt", "oldText": "3", "newText": "4"}}
CHAIN = [READ, COPY, EDIT, {**LATER, "dependsOn": ["edit"]}]


def outlooks(found: dict[str, Any]) -> dict[str, str]:
    return {each["stepId"]: each["outlook"] for each in found["steps"]}


def everything(*places: Path) -> dict[str, bytes]:
    """All files there, with what is in them."""
    files = [path for place in places for path in sorted(place.rglob("*")) if path.is_file()]
    return {str(path): path.read_bytes() for path in files}


async def ids(client: Client) -> set[str]:
    """The plans of this file."""
    return {each.id async for each in client.list_workflows("") if each.id.startswith("plan-rehearsed")}


async def test_what_is_said_before_comes_true_and_until_then_nothing_happens(
    environ: Environ, worker: Worker, temporal_client: Client, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / "c.txt").write_text("1\n2\n")
    file = written(tmp_path / "plan.json", {"title": "rehearsed", "cache": True, "steps": [READ, COPY]})
    first = (await plan(environ, "run", file, "--yes", "--json")).json["summary"]["planId"]
    file = written(tmp_path / "plan.json", {"title": "rehearsed", "cache": True, "steps": CHAIN})
    kept = Path(environ["PLANS_STATE_DIR"], "cache")
    before, known = everything(workspace, kept), await ids(temporal_client)
    told = await plan(environ, "run", file, "--dry-run", "--yes", "--json")
    shown = await plan(environ, "run", file, "--dry-run", "--yes")
    assert (told.code, shown.code) == (0, 0), told.err
    assert everything(workspace, kept) == before
    assert await ids(temporal_client) == known
    assert outlooks(told.json) == {"read": "cached", "copy": "cached", "edit": "run", "later": "run"}
    assert told.json["earlier"] == 1
    changes = {each["stepId"]: each["change"] for each in told.json["steps"] if each["change"]}
    assert [changes["edit"]["rows"][-2:], changes["later"]["rows"][-2:]] == [["-2", "+3"], ["-3", "+4"]]
    assert f"= read  read_file  from an earlier run: {first}/read" in shown.out
    assert "        -3\n        +4" in shown.out
    assert "2 are taken from earlier runs, 2 steps run" in shown.out
    run = (await plan(environ, "run", file, "--yes", "--json")).json["summary"]["planId"]
    view = (await plan(environ, "show", run, "--json")).json
    taken = {each["id"]: (each["result"].get("cache") or {}).get("takenFrom", "") for each in view["steps"]}
    assert taken == {"read": f"{first}/read", "copy": f"{first}/copy", "edit": "", "later": ""}
    assert (workspace / "c.txt").read_text() == "1\n4\n"


async def test_what_would_not_start_is_refused_as_by_the_start_itself(environ: Environ, tmp_path: Path) -> None:
    file = written(tmp_path / "plan.json", {"steps": [{"id": "a", "tool": "read_file", "args": {"nonsense": 1}}]})
    dry, real = [await plan(environ, "run", file, *more, "--json") for more in (["--dry-run"], [])]
    assert (dry.code, json.loads(dry.out)) == (real.code, json.loads(real.out)) != (0, {})


async def test_without_a_server_it_says_so_and_starts_none(environ: Environ, tmp_path: Path, workspace: Path) -> None:
    alone = {name: value for name, value in environ.items() if name != "TEMPORAL_ADDRESS"}
    alone |= {"PLANS_STATE_DIR": str(tmp_path / "nowhere"), "PLANS_SERVER": "embedded"}
    steps = [READ, {"id": "gone", "tool": "delete_file", "args": {"path": "a.txt"}, "dependsOn": ["read"]}]
    (workspace / "a.txt").write_text("one\n")
    shown = await plan(alone, "run", written(tmp_path / "plan.json", {"steps": steps}), "--dry-run")
    assert shown.code == 0, shown.err
    assert "asks: delete_file needs approval by default" in shown.out
    assert "'a.txt' would be deleted" in shown.out
    assert "no Temporal server runs" in shown.out
    assert not [path for path in (tmp_path / "nowhere").rglob("*") if path.is_file()]


async def test_child_plans_repetitions_and_what_closes_the_plan_are_shown_with_what_they_ask(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    gone = {"id": "gone", "tool": "delete_file", "args": {"path": "$inputs.path"}, "dependsOn": ["read"]}
    written(workspace / "clean.json", {"inputs": {"path": {"type": "string"}}, "steps": [READ, gone]})
    steps: list[dict[str, Any]] = [
        {"id": "clean", "tool": "plan", "args": {"file": "clean.json", "inputs": {"path": "a.txt"}}},
        {**READ, "id": "poll", "repeat": {"until": "value != null", "limit": 4}},
        {**READ, "id": "bound", "queue": "nobody-polls-this"},
    ]
    tidy = [{"id": "tidy", "tool": "write_file", "args": {"path": "end.txt", "content": "x"}}]
    file = written(tmp_path / "plan.json", {"title": "inner", "steps": steps, "finally": tidy})
    shown = await plan(environ, "run", file, "--dry-run")
    assert shown.code == 0, shown.err
    rows = [row.strip() for row in shown.out.splitlines()]
    for row in (
        "▸ clean  plan  runs", "▸ clean/read  read_file  runs", "▸ clean/gone  delete_file  runs",
        "▸ poll  at most 4 rounds  runs: in rounds, until value != null; the first one is", "▸ poll#1  read_file  runs",
        "▸ finally.tidy  write_file  runs", "'a.txt' would be deleted",
        "1 would wait for a person",
        "Note: no worker polls the queue 'nobody-polls-this' now, so its steps would wait for one.",
    ):  # fmt: skip
        assert row in rows, shown.out
    asks = rows.index("▸ clean/gone  delete_file  runs") + 1
    assert rows[asks].startswith("asks: delete_file needs approval by default")


async def test_a_plan_among_the_steps_of_an_item_says_what_it_asks_by_its_own_steps(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    inner = {"id": "inner", "tool": "plan", "args": {"steps": [READ]}}
    outer = {"id": "each", "forEach": {"items": ["x"], "as": "item"}, "steps": [inner]}
    file = written(tmp_path / "plan.json", {"title": "nested", "steps": [outer]})
    shown = await plan(environ, "run", file, "--dry-run")
    assert shown.code == 0, shown.err
    assert "▸ each[0].inner/read  read_file  runs" in [row.strip() for row in shown.out.splitlines()], shown.out
    assert "asks" not in shown.out
    assert "would wait for a person" not in shown.out


async def test_the_dry_run_of_a_plan_with_child_plans_comes_true(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / "b.txt").write_text("two\n")
    kept = {**READ, "cache": True}
    inside = [kept, {**kept, "id": "other", "args": {"path": "b.txt"}}]
    steps = [{"id": "sub", "tool": "plan", "args": {"steps": inside}}]
    file = written(tmp_path / "plan.json", {"title": "inner twice", "steps": steps})
    assert (await plan(environ, "run", file, "--yes")).code == 0
    (workspace / "b.txt").write_text("changed\n")
    told = (await plan(environ, "run", file, "--dry-run", "--yes", "--json")).json
    assert outlooks(told) == {"sub": "run", "sub/read": "cached", "sub/other": "run"}
    assert told["seconds"] is not None, "the child plan's own time is known"
    run = (await plan(environ, "run", file, "--yes", "--json")).json["summary"]["planId"]
    view = (await plan(environ, "show", f"{run}-sub", "--json")).json
    taken = {each["id"]: bool((each["result"].get("cache") or {}).get("takenFrom")) for each in view["steps"]}
    assert taken == {"read": True, "other": False}


async def test_the_items_of_loops_are_counted_and_the_undos_are_listed_with_what_they_ask(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    for name in "ab":
        (workspace / f"{name}.txt").write_text("one\n")
    gone = {"tool": "delete_file", "args": {"path": "{{item}}"}}
    steps: list[dict[str, Any]] = [
        {**gone, "id": "gone", "forEach": ["a.txt", "b.txt"],
         "undo": {"tool": "delete_file", "args": {"path": "x"}, "requiresApproval": True}},
        {"id": "files", "tool": "list_directory", "args": {"path": "."}},
        {"id": "each", "forEach": {"items": "files.entries"}, "steps": [{**gone, "id": "later"}]},
        {"id": "put", "tool": "write_file", "args": {"path": "new/put.txt", "content": "x"}, "undo": {"steps": [READ]}},
    ]  # fmt: skip
    file = written(tmp_path / "plan.json", {"title": "loops", "rollback": True, "steps": steps})
    shown = await plan(environ, "run", file, "--dry-run")
    assert shown.code == 0, shown.err
    rows = [row.strip() for row in shown.out.splitlines()]
    assert "4 steps run, 1 depends on what others find (each item of a loop counts)" in rows
    assert "2 would wait for a person; so would each item of each" in rows
    at = rows.index("If a step fails, these undo what completed:")
    assert rows[at + 1] == "gone  delete_file"
    assert rows[at + 2].startswith("asks: the plan says `requiresApproval: true`")
    assert rows[at + 3] == "put  steps"
    below = rows[rows.index("? each  depends on files") + 1]
    assert below.startswith("asks: each.later: delete_file needs approval by default")
