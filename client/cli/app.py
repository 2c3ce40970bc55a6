"""Entry point of the command line `plan`: registers the commands and maps every error to an exit code.

Exit codes: 0 success; 1 the plan ended but not all its steps completed; 2 invalid plan, argument or setting; 3 no
Temporal server or no worker reachable; 4 no such plan; 130 interrupted. Tracebacks are shown only with `plan --debug`.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from plansurvive.client.cli import commands
from plansurvive.client.cli.terminal import environment
from plansurvive.client.cli.terminal.signals import INTERRUPTED, interrupt

ENDED_OTHERWISE = 1

app = typer.Typer(
    name="plan",
    cls=commands.Commands,
    help="Plans that survive: run plans of tool steps on Temporal, with human approvals.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
commands.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata  # slower to import than the rest of this command

        from plansurvive.client.cli.terminal import output

        try:
            output.show(f"plan {metadata.version('plansurvive')}")
        except metadata.PackageNotFoundError:
            output.show("plan (not installed; running from source)")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    del version, debug  # `version` is read by its callback, `debug` by `_run` before anything can fail


def main() -> None:
    """Run as a program. Exits without interpreter teardown, which can crash the SDK's threads."""
    gc.disable()  # until the command is imported: imports leave no garbage
    signal.signal(signal.SIGTERM, interrupt)
    try:
        code = run(sys.argv[1:], loaded=_prepare)
        gc.collect()
        wrong = _flushed()
        code = code or wrong
    except KeyboardInterrupt:  # after the command's own end
        code = INTERRUPTED
    os._exit(code)


def _flushed() -> int:
    """Write what is left to write. Returns the exit code of a command whose output cannot be written."""
    wrong = 0
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed before the program began
        try:
            stream.flush()
        except OSError:  # the reader closed the pipe, as `| head` does, or there is no room
            wrong = ENDED_OTHERWISE
    return wrong


def run(
    arguments: list[str], environ: Mapping[str, str] | None = None, loaded: Callable[[], None] | None = None
) -> int:
    """Run a command and return its exit code. `environ` replaces the process's environment variables.

    `loaded` is called once the command's module has been imported.
    """
    with environment.environment(environ):
        return _run(arguments, loaded)


def _run(arguments: list[str], loaded: Callable[[], None] | None) -> int:
    as_json = "--json" in arguments
    rest = [argument for argument in arguments if argument != "--debug"] or ["--help"]
    try:
        return int(app(rest, prog_name="plan", standalone_mode=False, obj=loaded) or 0)
    except (KeyboardInterrupt, typer.Abort):
        from plansurvive.client.cli.terminal import output

        output.say("\nInterrupted.")
        return INTERRUPTED
    except SystemExit as exit:  # of shell completion, which ends so after it asked a server
        return exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    except BrokenPipeError:
        return ENDED_OTHERWISE
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        from plansurvive.client.cli.terminal import failures  # imports rich, which `plan --help` does without

        return failures.show(error, as_json=as_json)


def _prepare() -> None:
    """Runs between importing a command and running it."""
    gc.freeze()  # modules are permanent; rescanning them takes half the time of reading a big plan
    gc.enable()
    if "temporalio.runtime" in sys.modules:
        from temporalio.runtime import Runtime, TelemetryConfig

        Runtime.set_default(
            Runtime(telemetry=TelemetryConfig(logging=None))
        )  # its log lines would end up on the board and in JSON
