"""The command line `plan`: which commands there are, and how every error ends.

Exit codes: 0 done; 1 the plan ended otherwise than completed; 2 invalid plan, argument or setting; 3 no Temporal
server, or no worker to ask; 4 no such plan; 130 interrupted. No error shows a traceback, unless `plan --debug` asks for
it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Annotated, Any

import typer
from temporalio.runtime import Runtime, TelemetryConfig

from client.cli import (
    agent,
    check,
    codec,
    control,
    edit,
    environment,
    files,
    make,
    output,
    prune,
    resume,
    review,
    services,
    show,
    watch_files,
)
from client.cli import run as starting
from client.cli.plan_request import PlanRefused
from client.errors import PlanNotFound
from plans.errors import PlanError
from runtime.background_worker import WorkerFailed
from runtime.errors import NotConnected

ENDED_OTHERWISE, BAD_INPUT, NOT_CONNECTED, NOT_FOUND, INTERRUPTED = 1, 2, 3, 4, 130

app = typer.Typer(
    name="plan",
    help="Plans that survive: run plans of tool steps on Temporal, with approvals by people.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "run": starting.run,
    "start": starting.start,
    "make": make.make,
    "check": check.check_file,
    "list": show.list_,
    "show": show.show,
    "watch": show.watch,
    "watch-files": watch_files.watch_files,
    "files": files.files,
    "undo": files.undo,
    "summary": show.summary,
    "graph": show.graph,
    "pending": show.pending,
    "approve": control.approve,
    "deny": control.deny,
    "begin": control.begin,
    "review": review.review,
    "edit": edit.edit,
    "add": edit.add,
    "remove": edit.remove,
    "move": edit.move,
    "skip": edit.skip,
    "unskip": edit.unskip,
    "regenerate": edit.regenerate,
    "pause": control.pause,
    "unpause": control.unpause,
    "cancel": control.cancel,
    "interrupt": resume.interrupt,
    "resume": resume.resume,
    "rerun": resume.rerun,
    "agent": agent.agent,
    "history": agent.history,
    "tools": check.tools,
    "schema": check.schema,
    "up": services.up,
    "down": services.down,
    "doctor": services.doctor,
    "prune": prune.prune,
    "codec": codec.codec,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)
app.command(
    "worker",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)(services.worker)


def _version(asked: bool) -> None:
    if asked:
        try:
            output.show(f"plan {metadata.version('plans-that-survive')}")
        except metadata.PackageNotFoundError:
            output.show("plan (not installed, run from its source)")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    del version, debug  # read by their callback, and by `main` before anything can fail


def main() -> None:
    """Run as a program; leaves without tearing the interpreter down, which the SDK's threads do not always survive."""
    gc.freeze()  # modules stay: to go through them each time is half of what reading a big plan would take
    signal.signal(signal.SIGTERM, _interrupt)
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=None)))  # it would log onto the board, and into JSON
    code = run(sys.argv[1:])
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # whoever read us has seen enough
            code = code or ENDED_OTHERWISE
    os._exit(code)


def run(arguments: list[str], environ: Mapping[str, str] | None = None) -> int:
    """Run a command; returns its exit code. `environ`: its environment variables, unless they are the process's."""
    with environment.environment(environ):
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    rest = [argument for argument in arguments if argument != "--debug"] or ["--help"]
    try:
        return int(app(rest, prog_name="plan", standalone_mode=False) or 0)
    except PlanError as error:
        _show_traceback(arguments)
        _show_error(error, as_json)
        return _code(error)
    except (KeyboardInterrupt, typer.Abort):
        output.say("\nInterrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        return ENDED_OTHERWISE
    except Exception as error:
        _show_traceback(arguments)
        found, code = _unforeseen(error)
        output.show_error(found, as_json=as_json)
        return code


def _show_error(error: PlanError, as_json: bool) -> None:
    if not isinstance(error, PlanRefused):
        return output.show_error(error, as_json=as_json)
    lines = [error.file.line(problem) for problem in error.problems]
    return output.show_error(error, as_json=as_json, where=error.file.name, lines=lines)


def _code(error: PlanError) -> int:
    if isinstance(error, (NotConnected, WorkerFailed)):
        return NOT_CONNECTED
    return NOT_FOUND if isinstance(error, PlanNotFound) else BAD_INPUT


def _unforeseen(error: Exception) -> tuple[PlanError, int]:
    """A usage error of the command line's own library, or something nobody thought of."""
    if isinstance(error, typer.TyperException):
        return PlanError(error.format_message(), "BAD_USAGE"), BAD_INPUT
    if isinstance(error, OSError):
        return PlanError(str(error), "SYSTEM_ERROR"), ENDED_OTHERWISE
    text = f"{type(error).__name__}: {error}\nThis should not happen; plan --debug shows where it did."
    return PlanError(text, "UNEXPECTED"), ENDED_OTHERWISE


def _show_traceback(arguments: list[str]) -> None:
    if "--debug" in arguments:
        traceback.print_exc()


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
