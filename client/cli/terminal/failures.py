"""Maps every error of a command to a message and an exit code (`client.cli.app` lists the codes)."""

from __future__ import annotations

import re

import typer

from plansurvive.client.cli.terminal import output
from plansurvive.client.errors import PlanNotFound, PlanRefused
from plansurvive.plans.definition.plain_words import in_plain_words
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.errors import NotConnected, WorkerFailed

ENDED_OTHERWISE, BAD_INPUT, NOT_CONNECTED, NOT_FOUND = 1, 2, 3, 4


def show(error: Exception, *, as_json: bool) -> int:
    """Print an error and return the exit code."""
    found, code = (error, _code(error)) if isinstance(error, PlanError) else _unforeseen(error)
    _show(found, as_json)
    return code


def _show(error: PlanError, as_json: bool) -> None:
    if not isinstance(error, PlanRefused):
        return output.show_error(error, as_json=as_json)
    lines = [error.file.line(problem) for problem in error.problems]
    return output.show_error(error, as_json=as_json, where=error.file.name, lines=lines)


_MISSING = {
    "ID": "name a plan; `plan list` shows them",
    "STEP": "name a step; `plan show ID` lists them, `plan pending ID` those that await a decision",
    "FILE": "name a plan file; `plan init` makes a first one",
    "REQUEST": "say what is wanted, in quotation marks",
    "--set": "say what to change: --set STEP.FIELD=VALUE",
}
"""By argument or option, what to write."""


def _code(error: PlanError) -> int:
    if isinstance(error, (NotConnected, WorkerFailed)):
        return NOT_CONNECTED
    return NOT_FOUND if isinstance(error, PlanNotFound) else BAD_INPUT


def _unforeseen(error: Exception) -> tuple[PlanError, int]:
    """Usage errors of typer, operating system errors, and bugs."""
    if isinstance(error, typer.TyperException):
        text = in_plain_words(error.format_message())
        named = re.fullmatch(r"Missing (?:argument|option) '(.+)'\.", text)
        more = f": {_MISSING[named[1]]}" if named and named[1] in _MISSING else ""
        if text.startswith("No such option") and "Possible" not in text and (context := getattr(error, "ctx", None)):
            more = f"; `{context.command_path} --help` lists those there are"
        return PlanError(f"{text.removesuffix('.')}{more}." if more else text, "BAD_USAGE"), BAD_INPUT
    if isinstance(error, OSError):
        return PlanError(str(error), "SYSTEM_ERROR"), ENDED_OTHERWISE
    text = f"{type(error).__name__}: {error}\nThis is a bug; run it with plan --debug for the traceback."
    return PlanError(text, "UNEXPECTED"), ENDED_OTHERWISE
