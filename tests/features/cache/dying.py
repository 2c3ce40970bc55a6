"""Takes a kept result in a process of its own, which dies at a point of re-creating the files.

`python -m tests.features.cache.dying WORKSPACE STATE KEY POINT NUMBER`: it dies, as by kill -9, when the point is
reached for the NUMBERth time. Exit code 9 says that it was.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.tools.tool import ToolContext, tool
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.cache.in_worker import Results
from plansurvive.features.cache.model import CacheOrder
from plansurvive.features.cache.store import ResultStore
from plansurvive.plans.activity_io import Call, Return
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore
from tests.activities.attempts import Attempts

FILES = 5


@tool(effect="keyed", cache=True, version="1")
def spread(text: str, context: ToolContext) -> int:
    """Write files.

    Args:
        text: What is in them.
    """
    root = Path(context.workspace.root)
    (root / "called").write_text((root / "called").read_text() + "x" if (root / "called").exists() else "x")
    (root / "out").mkdir(exist_ok=True)
    for number in range(FILES):
        (root / "out" / str(number)).write_text(f"{text} {number}")
        context.wrote(f"out/{number}")
    return FILES


def attempts(workspace: Path, state: Path, site: ToolEnvironment) -> Attempts:
    """Attempts in that workspace, with the results kept below that directory."""
    values = ValueStore(LocalDirectory(state / "values"))
    return Attempts(workspace, values, Effects.at(state / "effects"), site)


def call_of(made: Attempts, key: str) -> Call:
    """The call of the step, with a key."""
    return made.call({"text": "text"}).model_copy(update={"key": key, "parts": {"cache": CacheOrder(asked=True)}})


async def taken(workspace: Path, state: Path, key: str, site: ToolEnvironment, again: bool) -> Return:
    """One attempt of the call."""
    results = Results(ResultStore(state / "cache"), {"spread": ("spread", "1")})
    made = attempts(workspace, state, ToolEnvironment(fault=site.fault, layers=[results])).but(again=again)
    return await made.run(spread, call_of(made, key))


def main(workspace: str, state: str, key: str, point: str, number: str) -> None:
    """Take the result, and die at the point."""
    left = [int(number)]

    def fault(name: str) -> None:
        left[0] -= name == point
        if left[0] == 0:
            os._exit(9)

    asyncio.run(taken(Path(workspace), Path(state), key, ToolEnvironment(fault=fault), again=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
