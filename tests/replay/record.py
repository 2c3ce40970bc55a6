"""Records the histories that every later version must replay: `python -m tests.replay.record [--again] [NAME ...]`.

Runs each scenario on a server of its own and writes the history of every run of its workflow to `histories/`, without
what tells of the machine it was recorded on. Those that have no history yet are recorded, or those named.

Once a version is released, a recorded history is never replaced: a change that records something else gets a scenario
of its own (CONTRIBUTING.md, "Changing a workflow"), and a name that has a history is refused. Before the first release
`--again` replaces histories, each when its scenario has run: all, or those named. Those of no scenario are removed.
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

from temporalio.client import Client, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.worker_features import features_of_worker
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import find_temporal
from plansurvive.worker import build
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans
from tests.kit.servers import development_server
from tests.kit.waiting import connected
from tests.replay import coding_agents, server_tools
from tests.replay.coding_agents import CODING_AGENTS
from tests.replay.ruled import ruling
from tests.replay.scenarios import LLM, SCENARIOS, TALKS
from tests.replay.server_tools import SERVER_TOOLS

HISTORIES = Path(__file__).parent / "histories"
RELEASES = Path(__file__).parent / "releases"
ROOT = Path(__file__).parent.parent.parent
SCENARIO_SECONDS = 180.0
"""After so long, a scenario has not come to its end: it waits for something that the code no longer does."""
_WORKER = re.compile(r"plans-worker-\d+@[^\"]*")


async def record(names: list[str], into: Path = HISTORIES, *, again: bool = False) -> None:
    """Run the scenarios and write their histories. `again`: in the place of those that are there."""
    into.mkdir(parents=True, exist_ok=True)
    recorded = [name for name in names if (into / f"{name}.1.json").exists()]
    if recorded and not again:
        raise SystemExit(f"recorded already, and not recorded again: {', '.join(recorded)}; add a scenario, or --again")
    with tempfile.TemporaryDirectory(prefix="plans-replay-") as folder:
        environ = {"HOME": os.environ["HOME"], "PLANS_STATE_DIR": f"{folder}/state", "PLANS_TASK_QUEUE": "replay"}
        settings = Settings.read(environ | {"PLANS_WORKSPACES": folder})  # none lies in the state directory
        async with development_server(await find_temporal(settings, print), Path(folder)) as server:
            client = await connected(server.address, data_converter=pydantic_data_converter, identity="recorder")
            failed = {}
            for name in names:
                try:
                    async with asyncio.timeout(SCENARIO_SECONDS):
                        _write(into, name, await _histories(name, client, settings, Path(folder)))
                except Exception as error:  # of a scenario that the present code does not bring to its end
                    failed[name] = repr(error)[:500]
                    print(f"{name}: FAILED: {failed[name]}", flush=True)
            if failed:
                raise SystemExit(f"not recorded: {', '.join(failed)}")


async def _histories(name: str, client: Client, settings: Settings, folder: Path) -> list[WorkflowHistory]:
    """The histories of a scenario, run by a worker of its own."""
    tools = load_tools([LEDGER_TOOLS])
    workspace = folder / name
    workspace.mkdir()
    with ScriptedLlm(Script.of(TALKS.get(name, LLM))) as llm, ruling(name, settings):
        asking = settings.with_flags(openai_base_url=llm.url, model="demo")
        if name in SERVER_TOOLS:
            server_tools.serve(asking, folder)
        if name in CODING_AGENTS:
            coding_agents.serve(asking, folder)
        features = features_of_worker(client, asking)
        async with features.running(tools, print), build(client, asking, tools, indexed=True, features=features):
            started = await SCENARIOS[name](Plans(client, "replay", workspace))
            return await started.histories()


def _write(into: Path, name: str, histories: list[WorkflowHistory]) -> None:
    for earlier in into.glob(f"{name}.[0-9]*.json"):
        earlier.unlink()
    for number, history in enumerate(histories, 1):
        data = {"workflowId": history.workflow_id, **_neutral(history.to_json_dict())}
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        _assert_neutral(data, text)
        (into / f"{name}.{number}.json").write_text(text)
    print(f"{name}: {len(histories)} runs, {sum(len(history.events) for history in histories)} events", flush=True)


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


def _refuse_after_a_release() -> None:
    """Raises SystemExit if histories of a release are there: plans that began on it must replay, as recorded."""
    released = sorted(path.name for path in RELEASES.iterdir()) if RELEASES.is_dir() else []
    if released:
        raise SystemExit(f"{', '.join(released)} is released: histories are kept as they are; add a scenario")


def _remove_unknown() -> None:
    for path in HISTORIES.glob("*.json"):
        if path.stem.rpartition(".")[0] not in SCENARIOS:
            path.unlink()


if __name__ == "__main__":
    names, again = [name for name in sys.argv[1:] if name != "--again"], "--again" in sys.argv
    if again:
        _refuse_after_a_release()
        _remove_unknown()
    missing = [name for name in SCENARIOS if again or not (HISTORIES / f"{name}.1.json").exists()]
    asyncio.run(record(names or missing, again=again))
    gc.collect()
    sys.stdout.flush()
    os._exit(0)
