"""The tools run_command and run_python. Both require approval and run through `activities.sandbox.process`.

Exit code 0 is success; any other fails the step, or with `allowFailure` becomes part of the value. Of the environment
only an allow list is passed on (PATH, LANG, LC_*, TZ, TMPDIR), HOME is the workspace, standard input is empty, and no
process outlives the step, not even with `&` or `nohup`. Further restrictions: `activities.sandbox.sandbox`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypedDict

from pydantic import Field

from plansurvive.activities.outputs.recorder import Recorder
from plansurvive.activities.sandbox.process import MAX_COMMAND_BYTES, run
from plansurvive.activities.sandbox.supervisor import NO_ROOM, NOT_CONFINED, TOO_MANY
from plansurvive.activities.tools.outgoing import OUTGOING
from plansurvive.activities.tools.tool import Tool, ToolContext, tool
from plansurvive.activities.workspace.effect_log import run_of
from plansurvive.plans.activity_io import STDERR, STDOUT
from plansurvive.plans.errors import ToolError
from plansurvive.plans.text.traces import reason_first
from plansurvive.runtime.value_store import Stream

MAX_SECONDS = 86_400.0
DEFAULT_SECONDS = 600.0
SHOWN_LINES, SHOWN_CHARACTERS = 20, 2_000

Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS)]
_OVER_A_LIMIT = {
    -TOO_MANY: "the command exceeded the process limit (PLANS_LIMIT_PROCESSES)",
    -NO_ROOM: "the command left less free space on the disk of the workspace than PLANS_LIMIT_FREE_MB keeps; free some"
    " there",
    128 + signal.SIGXCPU: "the command exceeded the CPU time limit (PLANS_LIMIT_CPU)",
    128 + signal.SIGXFSZ: "the command exceeded the file size limit (PLANS_LIMIT_FILE_MB)",
}
_OF_NO_NETWORK = re.compile(
    r"could not resolve|name resolution|name or service not known|network is unreachable|connection refused"
    r"|failed to connect|couldn't connect|eai_again|enotfound|enetunreach",
    re.IGNORECASE,
)
"""Error texts of programs that cannot reach the network."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Finished(TypedDict):
    """The value of run_command and run_python. Of long output, or such that is not UTF-8, the stored streams."""

    stdout: str | Stream
    stderr: str | Stream
    exitCode: int


_FINISHED = {
    "type": "object",
    "properties": {"stdout": {"type": "string"}, "stderr": {"type": "string"}, "exitCode": {"type": "integer"}},
    "additionalProperties": False,
}
"""What references and models know of the value: a stored stream is a text for them."""


@tool(
    approval="always", effect="opaque", outside=False, timeout=MAX_SECONDS, quoting={"command": "shell"},
    value_schema=_FINISHED,
)  # fmt: skip
async def run_command(
    command: str,
    context: ToolContext,
    cwd: str = ".",
    timeout: Seconds = DEFAULT_SECONDS,
    env: dict[str, str] | None = None,
    allow_failure: bool = False,
    network: bool = False,
) -> Finished:
    """Run a shell command (`/bin/sh -c`) in the workspace. Background processes are killed when it exits.

    Args:
        command: The command line; pipes, redirections and && work as usual.
        cwd: Working directory, relative to the workspace; default: the workspace itself.
        timeout: Timeout in seconds.
        env: Additional environment variables.
        allow_failure: If true, an exit code other than 0 does not fail the step.
        network: If true, the command has network access, to download files or reach a service.

    Returns:
        {stdout, stderr, exitCode}
    """
    _check_code("command", command)
    if len(command.encode()) > MAX_COMMAND_BYTES:
        text = "the command is longer than 128 KiB; write it to a file first and run that"
        raise ToolError("COMMAND_INVALID", text)
    _check_env(env or {})
    order = _Order(["/bin/sh", "-c", command], timeout, allow_failure, network, cwd, env or {})
    return await _run(order, context)


@tool(
    approval="always", effect="opaque", outside=False, timeout=MAX_SECONDS, quoting={"code": "python"},
    value_schema=_FINISHED,
)  # fmt: skip
async def run_python(
    code: str,
    context: ToolContext,
    timeout: Seconds = DEFAULT_SECONDS,
    allow_failure: bool = False,
    network: bool = False,
) -> Finished:
    """Run Python code in a separate process in the workspace. Only the standard library is guaranteed to be available.

    Args:
        code: The Python program.
        timeout: Timeout in seconds.
        allow_failure: If true, an exit code other than 0 does not fail the step.
        network: If true, the program has network access.

    Returns:
        {stdout, stderr, exitCode}
    """
    _check_code("code", code)
    command, given = [sys.executable, "-I", "-u", "-X", "utf8", "-c", code], ""
    if len(code.encode()) > MAX_COMMAND_BYTES:  # Python reads it whole before it runs, so its input is empty then, too
        command, given = [*command[:-2], "-"], code
    return await _run(_Order(command, timeout, allow_failure, network, given=given, is_shell=False), context)


SHELL_TOOLS: tuple[Tool, ...] = (run_command, run_python)


@dataclass(frozen=True)
class _Order:
    command: Sequence[str]
    timeout: float
    allow_failure: bool
    network: bool
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    given: str = ""
    """The program, where it is too long for the command line."""
    is_shell: bool = True


async def _run(order: _Order, context: ToolContext) -> Finished:
    async with context.recorder() as recorder:
        exit_code = await _exit_code(order, context, recorder)
        _check_end(order, exit_code, recorder, context)
        stdout, stderr = await recorder.texts()
        return {"stdout": stdout, "stderr": stderr, "exitCode": exit_code}


async def _exit_code(order: _Order, context: ToolContext, recorder: Recorder) -> int:
    root = context.workspace.root
    try:
        async with asyncio.timeout(order.timeout) as limit:
            with context.workspace.directory(order.cwd) as directory:
                place, network = _path_of(directory, root), order.network
                env = {**OUTGOING.get().variables, **order.env}
                confined = context.sandbox.confine(
                    order.command, root, place, context.protected, env, network=network, owner=run_of(context.call.key)
                )
                context.level = context.sandbox.level
                return await run(replace(confined, trace=context.trace, given=order.given), directory, recorder)
    except TimeoutError:
        if not limit.expired():
            raise
        recorder.check()
        where = f"; its last output line was: {context.line}" if context.line else ""
        raise ToolError(
            "COMMAND_TIMEOUT",
            f"the command took longer than {order.timeout:g} seconds and was killed{where}",
            retryable=True,
        ) from None


def _path_of(directory: int, root: str) -> str:
    """The present path of an open directory; it may have been moved."""
    try:
        return str(Path("/proc/self/fd", str(directory)).readlink())
    except OSError:
        return root


def _check_end(order: _Order, exit_code: int, recorder: Recorder, context: ToolContext) -> None:
    """Raise the error of a command that failed."""
    recorder.check()
    if exit_code == -NOT_CONFINED:
        raise ToolError(
            "SANDBOX_UNAVAILABLE",
            f"{_last_lines(recorder.tail(STDERR))}; run the worker as an ordinary user, use a workspace on another file"
            " system, or accept the risk with PLANS_SANDBOX=off",
        )
    if exit_code < 0 and exit_code not in _OVER_A_LIMIT:
        raise ToolError("COMMAND_FAILED", f"the command's launcher was killed (signal {-exit_code})", retryable=True)
    if exit_code < 0 or (exit_code and not order.allow_failure):
        raise _failure(order, exit_code, recorder, context)


def _failure(order: _Order, exit_code: int, recorder: Recorder, context: ToolContext) -> ToolError:
    said = _last_lines(recorder.tail(STDERR)) or _last_lines(recorder.tail(STDOUT))
    how = f"exit code {exit_code}" if exit_code >= 0 else "it was killed"
    message = how + (f": {reason_first(said)}" if said else "")
    if len(said) < len(recorder.tail(STDERR).strip() or recorder.tail(STDOUT).strip()):
        message += f"\n(only its end; all of it: plan logs {context.call.plan_id} {context.call.step_id})"
    shell, has_network = order.is_shell, context.sandbox.has_network(order.network)
    if exit_code in _OVER_A_LIMIT:
        return ToolError("RESOURCE_LIMIT", f"{_OVER_A_LIMIT[exit_code]}; {message}")
    if shell and exit_code == 127:
        return ToolError("COMMAND_NOT_FOUND", f"{message}; install the program or correct its name")
    if shell and exit_code == 126:
        return ToolError("NO_PERMISSION", f"{message}; the file is not executable")
    if os.strerror(errno.ENOSPC) in said:
        message += "; free some space on the disk that it writes to"
    if not has_network and _OF_NO_NETWORK.search(said):
        message += "; it ran without network access; if it needs it, add `network: true` to the step's arguments"
    return ToolError("COMMAND_FAILED", message, retryable=True)


def _last_lines(text: str) -> str:
    return "\n".join(text.rstrip().splitlines()[-SHOWN_LINES:])[-SHOWN_CHARACTERS:]


def _check_code(name: str, text: str) -> None:
    problem = ""
    if not text.strip():
        problem = "is empty"
    elif "\0" in text:
        problem = "contains a NUL character"
    elif any("\ud800" <= char <= "\udfff" for char in text):
        problem = "is not valid Unicode"
    if problem:
        raise ToolError("COMMAND_INVALID", f"the {name} {problem}")


def _check_env(env: dict[str, str]) -> None:
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise ToolError(
                "INVALID_ARGS",
                f"env: {name!r} is not a valid variable name, or its value contains NUL; use letters, digits and '_'",
            )
        if len(name.encode()) + len(value.encode("utf-8", "replace")) >= MAX_COMMAND_BYTES:
            raise ToolError("INVALID_ARGS", f"env: the value of {name} is longer than 128 KiB; pass it in a file")
