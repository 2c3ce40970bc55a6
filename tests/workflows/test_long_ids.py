"""Items of loops inside each other whose keys are long: their ids are whole, those of their activities fit."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.contrib.pydantic import pydantic_data_converter

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client.live.in_flight import in_flight
from plansurvive.features.audit import history
from plansurvive.features.outputs.attempts import Attempts
from plansurvive.plans.flow.ids import MAX_ACTIVITY_ID
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, work
from tests.kit.servers import development_server, oldest_program
from tests.kit.waiting import connected, until

KEYS = [text * 110 for text in ("長", "い", "鍵")]
INSIDE = f"one[{KEYS[0]}].two[{KEYS[1]}].three[{KEYS[2]}]"
FREE = {"requiresApproval": False}
CHILD = {"steps": [{"id": "write", "tool": "write_file", "args": {"path": "child.txt", "content": "c"}, **FREE}]}
INNER: list[dict[str, Any]] = [
    work("waits", args={"until": "go"}),
    {"id": "gate", "tool": "write_file", "args": {"path": "gate.txt", "content": "g"}, "requiresApproval": True},
    {"id": "child", "tool": "plan", "args": {"file": "child.json"}, **FREE},
    {"id": "fails", "tool": "read_file", "args": {"path": "none"}, "retry": {"attempts": 2, "delay": 0}},
    {"id": "each", "forEach": {"items": "list", "key": "n"}, "tool": "read_json", "args": {"path": "child.json"}},
]


def nested(innermost: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Three loops inside each other, of one item each, around steps."""
    steps = innermost
    for name, key in reversed(list(zip(("one", "two", "three"), KEYS, strict=True))):
        rule = {"items": [key], "key": "@", "tolerate": 1}
        steps = [{"id": name, "forEach": rule, "steps": steps, "dependsOn": ["list"] if name == "one" else []}]
    return [{"id": "list", "tool": "read_json", "args": {"path": "list.json"}}, *steps]


@pytest_asyncio.fixture(params=["oldest", "newest"])
async def served(
    request: pytest.FixtureRequest, temporal_binary: Path, settings: Settings, workspace: Path, queue: str,
    tmp_path: Path,
) -> AsyncIterator[Plans]:  # fmt: skip
    program = temporal_binary if request.param == "newest" else await oldest_program()
    async with development_server(program, tmp_path) as server:
        client = await connected(server.address, data_converter=pydantic_data_converter)
        async with build(client, settings, load_tools([LEDGER_TOOLS]), indexed=True):
            yield Plans(client, queue, workspace)


async def test_what_is_inside_loops_whose_keys_are_long_runs_and_is_found_by_its_whole_id(served: Plans) -> None:
    """A call, one that asks, one that fails twice, a child plan, a loop over a list outside history."""
    (served.workspace / "child.json").write_text(json.dumps(CHILD))
    (served.workspace / "list.json").write_text(json.dumps([{"n": number, "pad": "x" * 500} for number in range(30)]))
    assert len(f"{INSIDE}.gate".encode()) > MAX_ACTIVITY_ID
    plan = await served.start(nested(INNER))
    await plan.until(lambda view: f"{INSIDE}.gate" in str(view["pending"]), "the gate asks")
    await plan.approve(f"{INSIDE}.gate", by="ann")
    await until(lambda: (served.workspace / "child.txt").exists(), "the child plan writes")

    async def running() -> list[str]:
        known = await Attempts(served.client, plan.id.removeprefix("plan-")).known()
        return [each.label for each in known.attempts if each.runs]

    await until(lambda: running(), "the attempt that waits reports")
    assert await running() == [f"{INSIDE}.waits"]
    assert f"{INSIDE}.waits" in {each.step_id for each in await in_flight(served.client, plan.id)}
    (served.workspace / "go").touch()
    await plan.ended()
    page = await plan.handle.query("inside", {"stepId": INSIDE})
    found = {each["id"].removeprefix(f"{INSIDE}."): each["status"] for each in page["steps"]}
    assert {name: found[name] for name in found if "[" not in name} == dict.fromkeys(
        ("waits", "gate", "child", "each"), "completed"
    ) | {"fails": "failed"}
    record = await history.read(served.client, plan.id)
    named = {entry.step_id for entry in record.entries}
    assert {f"{INSIDE}.{name}" for name in ("waits", "gate", "fails")} <= named
