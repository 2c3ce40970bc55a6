"""What limits hold now, in `plan limits` and on the page `/limits`: used, running, left alone, and who waits."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.features.limits.model import EXCHANGE, WORKFLOW, LimitRow, workflow_id
from plansurvive.features.limits.views import in_words
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import browsing
from tests.apps.web.visiting import Visitor, service_on
from tests.client.cli.command import plan
from tests.kit.driving import terminated

FILE = """
[tools.stamp]
rate = "2/hour"
concurrency = 3
key = "args.name"

[tools."tracker.*"]
rate = "60/minute"

[llm]
tokens = "90000/minute"
"""
HOSTILE = "evil\x1b[2J <b>plan</b> s"
"""A plan's id and step as somebody may have written them."""


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (LimitRow(bucket="a"), ""),
        (LimitRow(bucket="a", rates=["60/minute"], used=[12]), "12 of 60/minute"),
        (LimitRow(bucket="a", rates=["1/second", "9/hour"], used=[1, 2]), "1 of 1/second, 2 of 9/hour"),
        (LimitRow(bucket="a", concurrency=4, running=3), "3 of 4 running"),
        (LimitRow(bucket="a", paused=12.4), "left alone for 12 s, as its server asked"),
        (LimitRow(bucket="a", waiting=1_200, next_in=4.6), "1,200 waiting, the first for 5 s"),
        (LimitRow(bucket="a", rates=["2/day"], used=[2], waiting=1), "2 of 2/day, 1 waiting"),
    ],
)
def test_a_limit_is_said_in_words(row: LimitRow, text: str) -> None:
    assert in_words(row) == text


@pytest_asyncio.fixture
async def used(temporal_client: Client, settings: Settings, worker: Worker) -> AsyncIterator[None]:
    """Limits of which one is used up: one call runs, and more wait than are listed."""
    (settings.state_dir / "limits.toml").write_text(FILE)
    name, queue = workflow_id(settings.task_queue), settings.task_queue
    handle = await temporal_client.start_workflow(WORKFLOW, {}, id=name, task_queue=queue)
    claim = {"bucket": "tools.stamp[x\x1b]", "rates": [[2, 3_600]], "concurrency": 3}
    asks = [{"id": f"a{at}", "call": f"c{at}", "what": f"{HOSTILE}{at}", "claims": [claim]} for at in range(14)]
    await handle.execute_update(EXCHANGE, {"asks": asks})
    await handle.execute_update(EXCHANGE, {"ended": [{"id": "a0", "pause": 900, "of": ["tools.stamp[x\x1b]"]}]})
    yield
    await terminated(temporal_client, name)


@pytest.mark.usefixtures("used")
async def test_the_command_lists_what_is_used_who_waits_and_what_is_not_used(environ: dict[str, str]) -> None:
    shown, data = await plan(environ, "limits"), (await plan(environ, "limits", "--json")).json
    assert shown.code == 0
    first, *rest = shown.out.splitlines()
    assert first.startswith("tools.stamp[x")
    assert "2 of 2/hour, 1 of 3 running, left alone for " in first
    assert "12 waiting, the first for " in first
    assert rest[0].startswith("  waits: evil")
    assert rest[0].endswith("<b>plan</b> s2")
    assert rest[10] == "  and 2 more"
    assert rest[11:] == ["tools.tracker.*: 60/minute, not used now", "llm.tokens: 90000/minute, not used now"]
    assert "\x1b" not in shown.out
    assert [(row["used"], row["running"], row["waiting"]) for row in data] == [([2], 1, 12)]


@pytest.mark.usefixtures("used")
async def test_the_page_shows_the_same(server: Server, settings: Settings, temporal_client: Client) -> None:
    service = service_on(server, settings, temporal_client)
    async with browsing(service) as browser:
        answer = await browser.get("/limits")
        text = await Visitor(service, browser, temporal_client).get("/limits")
    assert "2 of 2/hour, 1 of 3 running, left alone for " in text
    assert "and 2 more" in text
    assert "<code>tools.tracker.*: 60/minute</code>" in text
    assert "\x1b" not in text
    assert "<b>plan" not in answer.text


@pytest.mark.usefixtures("worker")
async def test_without_limits_both_say_so(
    environ: dict[str, str], server: Server, settings: Settings, temporal_client: Client
) -> None:
    shown = await plan(environ, "limits")
    assert shown.out == f"no limits are set; {settings.state_dir / 'limits.toml'} sets them (docs/limits.md)\n"
    async with browsing(service := service_on(server, settings, temporal_client)) as browser:
        assert "There are no limits." in await Visitor(service, browser, temporal_client).get("/limits")
        (settings.state_dir / "limits.toml").write_text("[tool.x]\nrate = '1/second'\n")
        refused = await Visitor(service, browser, temporal_client).get("/limits", 400)
    assert "did you mean 'tools'?" in refused
    assert (await plan(environ, "limits")).code == 2
