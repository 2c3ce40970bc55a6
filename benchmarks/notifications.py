"""How long it takes until people are notified: `python -m benchmarks.notifications [PLANS]`.

Plans on a server of their own each begin to await an approval, all at once and then one by one; a webhook on this
machine takes the time from the moment that a step asked to the moment that the message about it arrived.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from benchmarks.leaving import leave
from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import find_temporal
from plansurvive.worker import build
from tests.kit.servers import development_server
from tests.kit.sinks import Sink, targets_file, webhook_sink
from tests.kit.waiting import connected, until

BAR = 5.0
"""Seconds within which a decision that waits is said."""
PLAN = {"steps": [{"id": "a", "tool": "run_command", "args": {"command": "true"}}], "notify": "hook"}
QUEUE = "notifications"


async def main(count: int) -> int:
    """Measure and print; 1 if a message took longer than BAR."""
    with tempfile.TemporaryDirectory(prefix="plans-notify-") as folder, webhook_sink() as sink:
        environ = {"HOME": os.environ["HOME"], "PLANS_STATE_DIR": f"{folder}/state", "PLANS_TASK_QUEUE": QUEUE}
        settings = Settings.read(environ | {"PLANS_WORKSPACES": folder})
        targets_file(settings.state_dir / "notify.toml", hook=sink.url)
        async with development_server(await find_temporal(settings, print), Path(folder)) as server:
            client = await connected(server.address, data_converter=pydantic_data_converter)
            async with build(client, settings, load_tools(()), indexed=True):
                await _start(client, folder, 1)
                await until(lambda: _times(sink), "the first message")
                at_once = await _measured(client, folder, sink, count, together=True)
                single = await _measured(client, folder, sink, min(count, 20), together=False)
    for name, times in ((f"{count} plans at once", at_once), ("one by one", single)):
        ordered = sorted(times)
        p95 = ordered[int(len(ordered) * 0.95) - 1]
        print(f"{name}: median {ordered[len(ordered) // 2]:.2f} s, p95 {p95:.2f} s, longest {ordered[-1]:.2f} s")
    return int(max(*at_once, *single) > BAR)


async def _measured(client: Client, folder: str, sink: Sink, count: int, *, together: bool) -> list[float]:
    """The seconds that each of so many messages took."""
    known = len(_times(sink))
    for number in range(1 if together else count):
        await _start(client, folder, count if together else 1)
        wanted = known + (count if together else number + 1)
        await until(lambda: len(_times(sink)) >= wanted, "the messages arrive")  # noqa: B023
    return _times(sink)[known:]


async def _start(client: Client, folder: str, count: int) -> None:
    options = Options(workspace=folder)
    await asyncio.gather(*(runs.start(client, PLAN, options=options, queue=QUEUE) for _ in range(count)))


def _times(sink: Sink) -> list[float]:
    """Seconds from asking to arriving, of each decision that arrived."""
    arrived = [(at, item["time"]) for post, at in zip(sink.posts, sink.times, strict=False) for item in post.items]
    return [at - datetime.fromisoformat(asked).timestamp() for at, asked in arrived]


if __name__ == "__main__":
    leave(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)))
