"""The graphs of recorded real workflows, with express and without: each step ends the same, with the same value.

`families.json` has the smallest of each of 26 families of github.com/wfcommons/WfInstances, written by
`python -m benchmarks.families`. A step gives a digest of its name and of the values of all it waits for, so that one
that differs shows in every step after it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit.driving import Plans, View
from tests.nightly import sampled
from tests.workflows.conftest import Mode

SHAPES: dict[str, list[list[int]]] = json.loads(Path(__file__).with_name("families.json").read_text())
pytestmark = [pytest.mark.uses("express"), pytest.mark.modes("plain")]


@pytest_asyncio.fixture
async def worker(temporal_client: Client, settings: Settings, mode: Mode) -> AsyncIterator[Worker]:
    """A worker with a quick tool."""
    tools = load_tools([str(Path(__file__).with_name("quick_tools.py"))])
    async with build(temporal_client, settings, tools, indexed=True, cached=mode.cached) as running:
        yield running


def steps(shape: list[list[int]]) -> list[dict[str, Any]]:
    return [
        {"id": f"t{index}", "tool": "mix", "args": {"name": f"t{index}", "of": [f"$t{number}" for number in before]}}
        for index, before in enumerate(shape)
    ]


def ends(view: View) -> dict[str, Any]:
    return {each["id"]: (each["status"], each["result"]["value"]) for each in view["steps"]}


@pytest.mark.parametrize("family", sampled(sorted(SHAPES), 1))
async def test_a_real_graph_gives_the_same_values(plans: Plans, family: str) -> None:
    plain = await plans.run(steps(SHAPES[family]), express=False)
    view = await plans.run(steps(SHAPES[family]), express=True)
    assert (view["status"], plain["status"]) == ("completed", "completed")
    assert ends(view) == ends(plain)
    assert all("express" in each["result"] for each in view["steps"]), view["log"]


def test_all_families_are_there() -> None:
    assert (len(SHAPES), sum(map(len, SHAPES.values()))) == (26, 2_455)
