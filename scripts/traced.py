"""Counts what a step, an approval and a turn of an agent enter: files and functions of ours, in a worker at work.

    python -m scripts.traced
    python -m scripts.traced --files

- *step*: from the end of one to the beginning of the one after the next, so one of them is seen from ready to done
- *approval*: from the signal to the beginning of the step
- *turn of an agent*: from the end of one tool call to the beginning of the next, with the request to the model between

All threads of the worker count. `scripts.entered` counts what a replay enters.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.contrib.pydantic import pydantic_data_converter

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.worker_features import features_of_worker
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import find_temporal
from plansurvive.worker import build
from scripts.entered import Entered
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, work
from tests.kit.servers import development_server
from tests.kit.waiting import connected, until
from tests.replay.agents import start as start_agent
from tests.workflows.agents import call, says

QUEUE = "traced"
TALK = [
    says({"tool_calls": [call("work", name="one", until="one.go")]}),
    says({"tool_calls": [call("work", name="two", until="two.go")]}),
    says({"answer": "Both are done.", "confidence": "high"}),
]


class Traced(Entered):
    """What is entered while it is on."""

    on = False

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        """Note a call; the hook of `threading.setprofile`."""
        if self.on:
            super().__call__(frame, event, argument)

    async def between(self, plans: Plans, begin: Any, name: str) -> dict[str, list[str]]:
        """What is entered from `begin` to the beginning of the call `name` of the tool `work`."""
        self.codes.clear()
        self.on = True
        await begin()
        await until(lambda: ["start", name, "1"] in plans.ledger, f"'{name}' begins")
        self.on = False
        return self.functions()


async def traced(hook: Traced) -> dict[str, dict[str, list[str]]]:
    """The functions entered, by file, of each of the three."""
    found = dict[str, dict[str, list[str]]]()
    async with _running() as plans:

        def touch(name: str) -> Any:
            return lambda: asyncio.to_thread((plans.workspace / name).touch)

        read = {"id": "b", "tool": "list_directory", "args": {"path": "."}, "dependsOn": ["a"]}
        started = await plans.start([work("a", args={"until": "a.go"}), read, work("c", "b", args={"until": "c.go"})])
        await until(lambda: ["start", "a", "1"] in plans.ledger, "the first step begins")
        found["step"] = await hook.between(plans, touch("a.go"), "c")
        await touch("c.go")()
        await started.ended()

        started = await plans.start([work("gate", requiresApproval=True)])
        await started.until_asked("gate")
        found["approval"] = await hook.between(plans, lambda: started.approve("gate", by="ann"), "gate")
        await started.ended()

        started = await start_agent(plans)
        await until(lambda: ["start", "one", "1"] in plans.ledger, "the first call begins")
        found["turn of an agent"] = await hook.between(plans, touch("one.go"), "two")
        await touch("two.go")()
        await started.ended()
    return found


@asynccontextmanager
async def _running() -> AsyncIterator[Plans]:
    """A server, and a worker in this process."""
    with tempfile.TemporaryDirectory(prefix="plans-traced-") as folder, ScriptedLlm(Script.of(TALK)) as llm:
        environ = {"HOME": os.environ["HOME"], "PLANS_STATE_DIR": f"{folder}/state", "PLANS_TASK_QUEUE": QUEUE}
        settings = Settings.read(environ | {"PLANS_WORKSPACES": folder})
        settings = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with development_server(await find_temporal(settings, print), Path(folder)) as server:
            client = await connected(server.address, data_converter=pydantic_data_converter)
            workspace = Path(folder) / "workspace"
            workspace.mkdir()
            tools, features = load_tools([LEDGER_TOOLS]), features_of_worker(client, settings)
            async with features.running(tools, print), build(client, settings, tools, indexed=True, features=features):
                yield Plans(client, QUEUE, workspace)


def main(arguments: list[str]) -> int:
    """Print the counts; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", action="store_true")
    given, hook = parser.parse_args(arguments), Traced()
    threading.setprofile(hook)  # before the threads of the worker begin
    sys.setprofile(hook)
    for name, files in asyncio.run(traced(hook)).items():
        of_features = [each for each in files if each.startswith("features/")]
        count = sum(map(len, files.values()))
        print(f"{name}: {len(files)} files, {count} functions, {len(of_features)} of the files in features")
        for file, functions in sorted(files.items()) if given.files else ():
            print(f"  {file}: {', '.join(sorted(functions))}")
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    gc.collect()
    sys.stdout.flush()
    os._exit(code)
