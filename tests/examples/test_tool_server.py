"""The example with a tool server, as its comments say: the server is listed, the plan checked, approved and run."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.worker_features import features_of_worker
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from plansurvive.worker import build
from tests.client.cli.command import plan
from tests.kit.waiting import until

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "tool-server"


@pytest.fixture
def placed(settings: Settings) -> Settings:
    """The example's mcp.toml is in the state directory, with the interpreter of the tests."""
    text = (EXAMPLE / "mcp.toml").read_text().replace("HERE", str(EXAMPLE)).replace('"python3"', f'"{sys.executable}"')
    (settings.state_dir / "mcp.toml").write_text(text)
    return settings


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_tools_of_the_examples_server_are_checked_approved_and_called(
    temporal_client: Client, placed: Settings, environ: dict[str, str], workspace: Path
) -> None:
    order, tools = str(EXAMPLE / "order.yaml"), load_tools(())
    features = features_of_worker(temporal_client, placed)
    async with features.running(tools, pytest.fail):
        checked = await plan(environ, "check", order, "--json")
        assert checked.json["problems"] == []
        assert [each["stepId"] for each in checked.json["asks"]] == ["reserve"]
        async with build(temporal_client, placed, tools, indexed=True, features=features):
            await until(lambda: listeners(temporal_client, placed.task_queue), "the server sees the worker poll")
            running = asyncio.create_task(plan(environ, "run", order, "--id", "order", "--workspace", str(workspace)))

            async def asks() -> bool:
                return "shop.reserve" in (await plan(environ, "pending", "order")).out

            await until(asks, "the reservation awaits a person")
            assert (await plan(environ, "approve", "order", "reserve")).code == 0
            ended = await running
    assert ended.code == 0, ended.out + ended.err
    assert (workspace / "note.txt").read_text() == (EXAMPLE / "expected" / "note.txt").read_text()
