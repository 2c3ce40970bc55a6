"""Records the histories that every later version must replay: `python -m tests.replay.record [NAME ...]`.

Runs each scenario on a server of its own and writes the history of every run of its workflow to `histories/`, without
what tells of the machine it was recorded on. A recorded history is never replaced: a change that records something
else gets a scenario of its own (CONTRIBUTING.md, "Changing a workflow"). A name that has a history is refused.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import os
import re
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter

from activities.mcp.of_settings import tool_servers
from activities.mcp.server_tools import of_servers
from activities.tools.registry import load_tools
from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from runtime import daemon
from runtime.server import HOST, Server, flags, free_ports
from runtime.settings import Settings
from runtime.temporal_binary import find_temporal
from tests.driving import Plans
from tests.replay import server_tools
from tests.replay.scenarios import LLM, SCENARIOS, TALKS
from tests.replay.server_tools import SERVER_TOOLS
from tests.waiting import connected, until
from worker import build

HISTORIES = Path(__file__).parent / "histories"
ROOT = Path(__file__).parent.parent.parent
_WORKER = re.compile(r"plans-worker-\d+@[^\"]*")


async def record(names: list[str], into: Path = HISTORIES) -> None:
    """Run the scenarios and write their histories."""
    into.mkdir(parents=True, exist_ok=True)
    recorded = [name for name in names if (into / f"{name}.1.json").exists()]
    if recorded:
        raise SystemExit(f"recorded already, and never recorded again: {', '.join(recorded)}; add a scenario")
    with tempfile.TemporaryDirectory(prefix="plans-replay-") as folder:
        environ = {"HOME": os.environ["HOME"], "PLANS_STATE_DIR": f"{folder}/state", "PLANS_TASK_QUEUE": "replay"}
        settings = Settings.read(environ | {"PLANS_WORKSPACES": folder})  # none lies in the state directory
        server = await _server(settings, Path(folder))
        try:
            client = await connected(server.address, data_converter=pydantic_data_converter, identity="recorder")
            tools = load_tools([str(ROOT / "tests" / "ledger_tools.py")])
            for name in names:
                with ScriptedLlm(Script.of(TALKS.get(name, LLM))) as llm:
                    asking = settings.with_flags(openai_base_url=llm.url, model="demo")
                    workspace = Path(folder) / name
                    workspace.mkdir()
                    if name in SERVER_TOOLS:
                        server_tools.serve(asking, Path(folder))
                    async with tool_servers(asking) as servers:
                        served = await of_servers(servers, asking, tools, print)
                        async with build(client, asking, tools, indexed=True, servers=served):
                            started = await SCENARIOS[name](Plans(client, "replay", workspace))
                            _write(into, name, await started.histories())
        finally:
            await server.stop(grace=0)


async def _server(settings: Settings, folder: Path) -> Server:
    port, ui_port = free_ports(0, 0)
    command = [str(await find_temporal(settings, print)), *flags(port, ui_port, None)]
    command += ["--dynamic-config-value", 'history.workflowIdReuseMinimalInterval="0s"']
    pid, began = daemon.start(command, folder / "server.log", os.environ)
    server = Server(pid=pid, began=began, address=f"{HOST}:{port}", ui="")
    await until(server.accepts, "the server listens")
    return server


def _write(into: Path, name: str, histories: list[WorkflowHistory]) -> None:
    for number, history in enumerate(histories, 1):
        data = {"workflowId": history.workflow_id, **_neutral(history.to_json_dict())}
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        _assert_neutral(data, text)
        (into / f"{name}.{number}.json").write_text(text)
    print(f"{name}: {len(histories)} runs, {sum(len(history.events) for history in histories)} events")


def _neutral(value: Any) -> Any:
    """The history without names of this machine and without stack traces."""
    if isinstance(value, dict):
        return {key: "" if key == "stackTrace" else _neutral(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_neutral(item) for item in value]
    return _WORKER.sub("worker", value) if isinstance(value, str) else value


def _assert_neutral(value: Any, text: str) -> None:
    """Raises AssertionError when something of this machine is in it, payloads decoded."""
    texts = [text, *(base64.b64decode(data).decode(errors="replace") for data in _payloads(value))]
    for secret in (socket.gethostname() + '"', str(ROOT), os.environ["HOME"] + "/"):
        assert not any(secret in each for each in texts), f"{secret} is in the history"


def _payloads(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["data"]] if isinstance(value.get("data"), str) and "metadata" in value else []
        return own + [found for item in value.values() for found in _payloads(item)]
    return [found for item in value for found in _payloads(item)] if isinstance(value, list) else []


if __name__ == "__main__":
    missing = [name for name in SCENARIOS if not (HISTORIES / f"{name}.1.json").exists()]
    asyncio.run(record(sys.argv[1:] or missing))
    gc.collect()
    sys.stdout.flush()
    os._exit(0)
