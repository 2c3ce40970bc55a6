"""A program that makes attempts of tools in processes of their own, which may die: one JSON line in, one out.

    {"workspace", "state", "tool", "args", "step", "point"?, "line"?, "again"?}  ->  {"killed", "value"?, "code"?}

`point` is one of `tests.chaos.faults`; `line` is `[FILE, N]`: it dies before the Nth line that it comes to in FILE.

It has imported everything before, so that a death costs a fork and not a start.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
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


def _dies_at(file: str, number: int) -> None:
    """Kill this process when it comes to a line of a module for the nth time, in whatever thread."""
    left = number

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(f"/{file}"):
            return None
        if event == "line":
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


def _outcome(case: dict[str, Any]) -> dict[str, Any]:
    if "line" in case:
        _dies_at(*case["line"])
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
