"""A command that makes files whose names are not UTF-8: it runs once, its step completes, and so do those beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plansurvive.client import runs
from tests.kit.driving import Plans, step

pytestmark = pytest.mark.modes("plain")
COMMAND = (
    "echo run >> count; touch \"$(printf 'x\\377y')\" \"$(printf 'two\\nlines')\"; echo here > \"$(printf 'd\\376')\""
)
FREE: dict[str, Any] = {"requiresApproval": False}
STEPS: list[dict[str, Any]] = [
    {"id": "make", "tool": "run_command", "args": {"command": COMMAND}, **FREE},
    {"id": "list", "tool": "find_files", "args": {"pattern": "*"}, "dependsOn": ["make"]},
    {"id": "read", "tool": "read_file", "args": {"path": r"d\xfe"}, "dependsOn": ["make"]},
    {"id": "edit", "tool": "edit_file", "args": {"path": r"d\xfe", "oldText": "here", "newText": "there"},
     "dependsOn": ["read"]},
]  # fmt: skip
MADE = {r"x\xffy", "two\nlines", r"d\xfe"}


async def test_the_command_runs_once_and_its_files_are_shown_stamped_reported_and_undone(plans: Plans) -> None:
    started = await plans.start(STEPS)
    view = await started.ended()
    assert view["status"] == "completed", view
    assert (plans.workspace / "count").read_text() == "run\n"
    assert step(view, "make")["result"]["attempt"] == 1
    assert set(view["step_files"]["0"]) >= MADE | {"count"}
    assert set(step(view, "list")["result"]["value"]) == MADE | {"count"}
    assert step(view, "read")["result"]["value"] == "here\n"
    client, name = plans.client, started.id
    assert set(await runs.stamps(client, name)) >= MADE
    report = await runs.file_changes(client, name)
    assert {change.path for call in report.calls for change in call.changes} >= MADE
    text = await started.handle.query("text")
    assert r"x\xffy" in text
    assert json.dumps(view, ensure_ascii=False).encode()
    assert (
        r"x\xffy" in (plans.workspace.parent / "state" / "runs" / name.removeprefix("plan-") / "SUMMARY.md").read_text()
    )
    undone = await runs.undo(client, name)
    assert undone.refused == []
    assert list(plans.workspace.iterdir()) == []


async def test_a_command_beside_it_completes_too(plans: Plans) -> None:
    waiting = 'until ls | grep -q "^count$"; do sleep 0.02; done; echo run >> beside'
    beside = {"id": "beside", "tool": "run_command", "args": {"command": waiting}, **FREE}
    view = await plans.run([STEPS[0], beside])
    assert view["status"] == "completed", view
    for name in ("count", "beside"):
        assert (plans.workspace / name).read_text() == "run\n"


async def test_a_report_of_others_makes_such_a_file_stale(plans: Plans, workspace: Path) -> None:
    waits = {"id": "wait", "tool": "sleep", "args": {"seconds": 0.01}, "requiresApproval": True, "dependsOn": ["make"]}
    late = {**STEPS[-1], "dependsOn": ["wait"]}
    started = await plans.start([STEPS[0], waits, late])
    await started.until_asked("wait")
    await runs.files_changed(plans.client, started.id, [r"d\xfe"], "test")
    assert (await runs.stamps(plans.client, started.id))[r"d\xfe"].state == "stale"
    await started.approve("wait")
    assert step(await started.ended(), "edit")["result"]["code"] == "CONFLICT"
