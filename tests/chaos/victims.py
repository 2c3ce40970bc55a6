"""A program that makes attempts of tools in processes of their own, which may die: one JSON line in, one out.

    {"workspace", "state", "tool", "args", "step", "point"?, "again"?}  ->  {"killed", "value"?, "code"?}

It has imported everything before, so that a death costs a fork and not a start.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore
from tests.activities.attempts import Attempts
from tests.chaos.faults import killed_at


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        print(json.dumps(_attempt(json.loads(line))), flush=True)


def _attempt(case: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, json.dumps(_outcome(case)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"killed": killed} | (json.loads(said) if said else {})


def _outcome(case: dict[str, Any]) -> dict[str, Any]:
    site = ToolEnvironment(fault=killed_at(case["point"])) if "point" in case else ToolEnvironment()
    state = Path(case["state"])
    attempts = Attempts(Path(case["workspace"]), ValueStore(LocalDirectory(state / "values")), Effects.at(state), site)
    try:
        done = attempts.but(step=case["step"], again=case.get("again", False)).run(case["tool"], **case["args"])
        return {"value": asyncio.run(done).value}
    except ApplicationError as error:
        return {"code": error.type}


if __name__ == "__main__":
    main()
