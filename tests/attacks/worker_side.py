"""The worker's side of an attack: runs commands as a worker runs those of steps, one request per line of its input.

    python -m tests.attacks.worker_side

A request has the worker's environment and the step's arguments. For each, a new process with that environment reads its
settings, chooses its sandbox and calls the tool's activity; its answer is one line. It is a program, since the sandbox
of an ordinary user has to be tried by a process of that user, from its start.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from plansurvive.activities.attempt.environment import environment_of
from plansurvive.activities.attempt.run import tool_activity
from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.activities.workspace.effect_log import EFFECTS, Effects
from plansurvive.plans.activity_io import Call
from plansurvive.plans.model import Retry
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore

TIMEOUT = 60.0


async def attempt(request: dict[str, Any]) -> dict[str, Any]:
    """One step with a command; what came back, or the error."""
    settings = Settings.read(os.environ)
    effects = Effects.at(settings.state_dir / EFFECTS)
    site = environment_of(settings, effects)
    values = ValueStore(LocalDirectory(settings.state_dir))
    run = tool_activity(builtin_tools()["run_command"], values, effects, site)
    call = Call(
        args={"allowFailure": True, "timeout": TIMEOUT / 2, **request["args"]},
        plan_id="p",
        step_id="s",
        key=f"plan-p/{request['id']}",
        workspace=request["workspace"],
        timeout=TIMEOUT,
        retry=Retry(),
        approved=True,
    )
    level = site.sandbox.level
    try:
        returned = await ActivityEnvironment().run(run, call)
    except ApplicationError as error:
        return {"level": level, "code": error.type, "text": error.message}
    value = await values.get(returned.large) if returned.large else ""
    return {"level": level, "code": "", "text": f"{returned.model_dump_json()}{value}"}


def answered(request: dict[str, Any]) -> bytes:
    """The answer of a new process with the environment of the request."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        os.environ.clear()
        os.environ.update(request["environ"])
        try:
            answer = asyncio.run(attempt(request))
        except BaseException as error:
            answer = {"level": "", "code": "FAULT", "text": f"{type(error).__name__}: {error}"}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer_bytes = pipe.read()
    os.waitpid(process, 0)
    return answer_bytes or b'{"level": "", "code": "FAULT", "text": "the worker ended without an answer"}'


def main() -> None:
    """Answer until the end of standard input."""
    os.chdir(Path("/"))
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(answered(json.loads(line)) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
