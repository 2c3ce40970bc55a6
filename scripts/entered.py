"""Counts what the replay of a recorded plan enters: files and functions of ours, and those of features.

    python -m scripts.entered [HISTORY ...]       names in tests/replay/histories; `chain.1` if none is given
    python -m scripts.entered --files chain.1     and the files, with the functions entered in each
    python -m scripts.entered --step              one step of that plan, from ready to done

What a reader has to know to follow that plan through the workflow: modules that are imported and never entered do not
count, nor does the SDK. A feature that the plan does not use should not be entered at all.

A step is counted without features: the activation of the workflow in which one has ended and the next is sent, and an
attempt of `write_file` in an activity. `scripts.traced` counts it in a worker with all features.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, WorkflowInstance, WorkflowInstanceDetails

from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.workflow_types import WORKFLOWS
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore
from tests.activities.attempts import Attempts

ROOT = Path(__file__).resolve().parent.parent
HISTORIES = ROOT / "tests" / "replay" / "histories"
OURS = ("plans", "workflows", "features", "runtime", "activities", "client")


class Entered:
    """The code of ours that a replay enters, in any thread."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; the hook of `sys.setprofile`."""
        if event == "call":
            self.codes.add(frame.f_code)

    def functions(self) -> dict[str, list[str]]:
        """The functions entered, by file relative to the root. The body of a module is no function."""
        found = defaultdict(list)
        for code in self.codes:
            path = Path(code.co_filename)
            if code.co_name != "<module>" and path.is_relative_to(ROOT):
                name = path.relative_to(ROOT).as_posix()
                if name.partition("/")[0] in OURS:
                    found[name].append(code.co_qualname)
        return dict(found)


def entered(names: list[str]) -> dict[str, list[str]]:
    """What the replay of these histories enters. Raises RuntimeError if one cannot be replayed."""
    hook = Entered()
    # The thread ends first: it still clears the workflow away when its replay has been reported.
    with ThreadPoolExecutor(1, initializer=lambda: sys.setprofile(hook)) as executor:
        asyncio.run(_replay(names, executor, UnsandboxedWorkflowRunner()))
    return hook.functions()


class _AtTurn(UnsandboxedWorkflowRunner):
    """Has what the workflow enters noted in one of its activations, from 1; the first is that of its start."""

    def __init__(self, hook: Entered, turn: int) -> None:
        super().__init__()
        self._hook, self._turn, self._seen = hook, turn, 0

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """The instance of a workflow, watched."""
        instance = super().create_instance(det)
        activate = instance.activate

        def watched(act: WorkflowActivation) -> WorkflowActivationCompletion:
            self._seen += 1
            sys.setprofile(self._hook if self._seen == self._turn else None)
            try:
                return activate(act)
            finally:
                sys.setprofile(None)

        setattr(instance, "activate", watched)  # noqa: B010 - it is a method for the type checker
        return instance


def entered_by_step(name: str) -> dict[str, list[str]]:
    """What a step in the middle of a recorded plan enters in its workflow, and an attempt of `write_file`."""
    hook = Entered()
    with ThreadPoolExecutor(1) as executor:
        asyncio.run(_replay([name], executor, _AtTurn(hook, turn=3)))
    asyncio.run(_attempt(hook))
    return hook.functions()


async def _attempt(hook: Entered) -> None:
    """One attempt to write a file, in an activity of a worker without features."""
    with tempfile.TemporaryDirectory(prefix="plans-entered-") as folder:
        state, workspace = Path(folder) / "state", Path(folder) / "workspace"
        workspace.mkdir()
        attempts = Attempts(workspace, ValueStore(LocalDirectory(state / "values")), Effects.at(state / "effects"))
        threading.setprofile(hook)
        sys.setprofile(hook)
        try:
            await attempts.run("write_file", path="a.txt", content="a")
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


async def _replay(names: list[str], executor: ThreadPoolExecutor, runner: UnsandboxedWorkflowRunner) -> None:
    replayer = Replayer(
        workflows=WORKFLOWS,
        workflow_task_executor=executor,
        workflow_runner=runner,
        data_converter=pydantic_data_converter,
    )
    for name in names:
        data = json.loads((HISTORIES / f"{name}.json").read_text())
        result = await replayer.replay_workflow(
            WorkflowHistory.from_json(data.pop("workflowId"), data), raise_on_replay_failure=False
        )
        if result.replay_failure is not None:
            raise RuntimeError(f"{name} cannot be replayed: {result.replay_failure}")


def main(arguments: list[str]) -> int:
    """Print the counts; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=["chain.1"])
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--step", action="store_true")
    given = parser.parse_args(arguments)
    found = entered_by_step(given.names[0]) if given.step else entered(given.names)
    of_features = [name for name in found if name.startswith("features/") and name.count("/") > 1]
    functions = [name for each in found.values() for name in each]
    inner = sum(name.endswith(("<listcomp>", "<dictcomp>", "<genexpr>", "<lambda>")) for name in functions)
    what = "a step of " if given.step else ""
    print(f"{len(found)} files, {len(functions)} functions entered by {what}{', '.join(given.names)}")
    print(f"{inner} of the functions are comprehensions, generator expressions and lambdas")
    print(f"{len(of_features)} files of features")
    folders = Counter("/".join(name.split("/")[:2]) if name.count("/") > 1 else name.split("/")[0] for name in found)
    print(", ".join(f"{folder} {number}" for folder, number in sorted(folders.items())))
    for name, functions in sorted(found.items()) if given.files else ():
        print(f"{name}: {', '.join(sorted(functions))}")
    return 0


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    threading.setprofile(None)
    code = main(sys.argv[1:])
    gc.collect()
    sys.stdout.flush()
    os._exit(code)
