"""Canaries: a text of its own in each place where a plan holds one; with keys, none is found anywhere outside.

Searched are all that the server gives to those who ask it (histories, descriptions, schedules), every file of the state
directory, and what each process shows. The control is the same plan without keys: there every canary is found.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, Schedule, ScheduleActionStartWorkflow, ScheduleSpec

from plansurvive.activities.tools.registry import load_tools
from plansurvive.runtime.connect import connect
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.features.keys.rings import key, ring_file
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, Started, step, work

PLACES = (
    "argument", "value", "description", "undo", "notes", "input", "output", "condition", "failure",
    "comment", "denial", "approver", "question", "answer", "event", "edit", "large value", "command", "stdout",
    "stderr", "file read", "file before", "item", "refused message", "memo", "schedule", "who pauses", "sleep note",
)  # fmt: skip
KEY = key()


def canary(place: str) -> str:
    """A text that is nowhere else."""
    return f"canary{PLACES.index(place):02d}" + place.replace(" ", "").upper() + "q7z"


def command() -> dict[str, Any]:
    """A command that writes canaries which are not in its own text."""
    out, err = canary("stdout"), canary("stderr")
    text = f": {canary('command')}; echo {out[:8]}''{out[8:]}; echo {err[:8]}''{err[8:]} >&2"
    return {"id": "run", "tool": "run_command", "args": {"command": text}, "requiresApproval": False}


def plan() -> dict[str, Any]:
    """A plan with a canary in each place."""
    return {
        "title": "open to everybody",
        "outputs": {"all": f"say | [@, '{canary('output')}']"},
        "steps": [
            work("say", args={"name": canary("argument"), "value": canary("value")}, description=canary("description")),
            work("greet", args={"value": canary("input")}, notes=canary("notes")),
            work("guarded", "say", when=f"say != '{canary('condition')}'"),
            {"id": "lost", "tool": "read_file", "args": {"path": canary("failure")}, "critical": False},
            work("yes", requiresApproval=True, undo={"tool": "work", "args": {"name": canary("undo")}}),
            work("no", requiresApproval=True),
            {"id": "who", "tool": "ask", "args": {"question": canary("question")}},
            {"id": "paid", "tool": "wait_for", "args": {"event": "paid"}},
            work("later", "yes", requiresApproval=True),
            work("big", args={"value": canary("large value") * 1_000}),
            command(),
            {"id": "read", "tool": "read_file", "args": {"path": "read.txt"}},
            {"id": "write", "tool": "write_file", "args": {"path": "before.txt", "content": "x"},
             "requiresApproval": False},
            {"id": "each", "forEach": {"items": [canary("item")]}, **work("each", args={"name": "$item"})},
            {"id": "nap", "tool": "sleep", "args": {"seconds": 0.01}, "description": canary("sleep note")},
        ],
    }  # fmt: skip


async def lived(client: Client, settings: Settings, workspace: Path) -> Started:
    """The plan, from its start to its end, with everything that people do to it."""
    (workspace / "read.txt").write_text(canary("file read"))
    (workspace / "before.txt").write_text(canary("file before"))
    plans = Plans(client, settings.task_queue, workspace)
    options = {"workspace": str(workspace), "waivers": True}
    started = await plans.start_with({"plan": plan(), "options": options})
    await started.until_asked("yes")
    await started.signal("approve", canary("refused message"))
    await started.handle.execute_update(
        "edit", {"edits": [{"op": "set", "stepId": "later", "path": "args.name", "value": canary("edit")}]}
    )
    await started.handle.execute_update("control", {"action": "pause", "by": canary("who pauses")})
    await started.handle.execute_update("control", {"action": "unpause"})
    await started.signal("answer", {"stepId": "who", "value": canary("answer")})
    await started.signal("event", {"name": "paid", "data": canary("event")})
    await started.approve("yes", comment=canary("comment"), by=canary("approver"))
    await started.deny("no", comment=canary("denial"))
    await started.until_asked("later")
    await started.approve("later", version=2)
    view = await started.ended()
    assert step(view, "run")["status"] == step(view, "write")["status"] == step(view, "who")["status"] == "completed"
    return started


async def held(client: Client, settings: Settings, started: Started) -> bytes:
    """All that can be found outside of our processes."""
    memo = await client.start_workflow(
        "PlanWorkflow", {"plan": {}}, id=f"{started.id}-memo", task_queue="nobody", memo={"note": canary("memo")},
        execution_timeout=timedelta(minutes=1),
    )  # fmt: skip
    action = ScheduleActionStartWorkflow(
        "PlanWorkflow", {"plan": canary("schedule")}, id=f"{started.id}-later", task_queue="nobody"
    )
    schedule = await client.create_schedule(f"{started.id}-schedule", Schedule(action, ScheduleSpec()))
    found = [(await each.describe()).raw_description.SerializeToString() for each in (started.handle, memo, schedule)]
    found += [event.SerializeToString() for event in await started.events()]
    for path in settings.state_dir.rglob("*"):
        if path.is_file():
            found.append(str(path).encode() + path.read_bytes())
    found += [path.read_bytes() for path in Path("/proc/self").glob("cmdline")]
    await schedule.delete()
    await memo.terminate()
    return b"\0".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [True, False], ids=["with keys", "control without keys"])
async def test_canaries_are_found_nowhere(
    environ: dict[str, str], tmp_path: Path, workspace: Path, keys: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ring = {"PLANS_KEYS": str(ring_file(tmp_path / "keys", KEY))} if keys else {}
    settings = Settings.read(environ | ring | {"PLANS_INLINE_BYTES": "1024"})
    client = await connect(settings)
    async with build(client, settings, load_tools([LEDGER_TOOLS]), indexed=True):
        started = await lived(client, settings, workspace)
    everything = await held(client, settings, started) + caplog.text.encode()
    found = [place for place in PLACES if canary(place).encode() in everything]
    assert found == ([] if keys else list(PLACES)), found
