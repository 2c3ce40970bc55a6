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
from typing import Annotated, Any

import typer

from client.cli import commands, environment

ENDED_OTHERWISE, INTERRUPTED = 1, 130

app = typer.Typer(
    name="plan",
    help="Plans that survive: run plans of tool steps on Temporal, with approvals by people.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
commands.register(app)


def _version(asked: bool) -> None:
    if asked:
        from importlib import metadata  # takes longer to load than the rest of this command

        from client.cli import output

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
    gc.disable()  # until the command is imported: nothing of that is garbage
    signal.signal(signal.SIGTERM, _interrupt)
    code = run(sys.argv[1:], loaded=_prepare)
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # whoever read us has seen enough
            code = code or ENDED_OTHERWISE
    os._exit(code)


def run(
    arguments: list[str], environ: Mapping[str, str] | None = None, loaded: Callable[[], None] | None = None
) -> int:
    """Run a command; returns its exit code. `environ` replaces the process's environment variables.

    `loaded` is called when the command's module has been imported.
    """
    with environment.environment(environ):
        return _run(arguments, loaded)


def _run(arguments: list[str], loaded: Callable[[], None] | None) -> int:
    as_json = "--json" in arguments
    rest = [argument for argument in arguments if argument != "--debug"] or ["--help"]
    try:
        return int(app(rest, prog_name="plan", standalone_mode=False, obj=loaded) or 0)
    except (KeyboardInterrupt, typer.Abort):
        from client.cli import output

        output.say("\nInterrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        return ENDED_OTHERWISE
    except Exception as error:
        _show_traceback(arguments)
        from client.cli import failures  # with what it prints with, which `plan --help` does without

        return failures.show(error, as_json=as_json)


def _prepare() -> None:
    """What comes between importing a command and running it."""
    gc.freeze()  # modules stay: to go through them each time is half of what reading a big plan would take
    gc.enable()
    if "temporalio.runtime" in sys.modules:
        from temporalio.runtime import Runtime, TelemetryConfig

        Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=None)))  # it would log onto the board, into JSON


def _show_traceback(arguments: list[str]) -> None:
    if "--debug" in arguments:
        traceback.print_exc()


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
