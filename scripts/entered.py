"""Counts what the replay of a recorded plan enters: files and functions of ours, and those of features.

    python -m scripts.entered [HISTORY ...]       names in tests/replay/histories; `chain.1` if none is given
    python -m scripts.entered --files chain.1     and the files, with the functions entered in each

What a reader has to know to follow that plan through the workflow: modules that are imported and never entered do not
count, nor does the SDK. A feature that the plan does not use should not be entered at all.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import sys
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from plansurvive.features.workflow_types import WORKFLOWS

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
        asyncio.run(_replay(names, executor))
    return hook.functions()


async def _replay(names: list[str], executor: ThreadPoolExecutor) -> None:
    replayer = Replayer(
        workflows=WORKFLOWS,
        workflow_task_executor=executor,
        workflow_runner=UnsandboxedWorkflowRunner(),
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
    given = parser.parse_args(arguments)
    found = entered(given.names or ["chain.1"])
    of_features = [name for name in found if name.startswith("features/") and name.count("/") > 1]
    functions = [name for each in found.values() for name in each]
    inner = sum(name.endswith(("<listcomp>", "<dictcomp>", "<genexpr>", "<lambda>")) for name in functions)
    print(f"{len(found)} files, {len(functions)} functions entered by {', '.join(given.names)}")
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
