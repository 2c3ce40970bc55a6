"""Maps every error of a command to a message and an exit code (`client.cli.app` lists the codes)."""

from __future__ import annotations

import re
from typing import Any

import typer

from plansurvive.client.cli.terminal import output
from plansurvive.client.errors import PlanNotFound, PlanRefused
from plansurvive.plans.definition.plain_words import in_plain_words
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.errors import NotConnected, WorkerFailed

ENDED_OTHERWISE, BAD_INPUT, NOT_CONNECTED, NOT_FOUND, UNANSWERED = 1, 2, 3, 4, 5


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
    "STEP.json": "name a file with the step, as JSON or YAML",
    "NAME": "give it a name",
    "--set": "say what to change: --set STEP.FIELD=VALUE",
}
"""By argument or option, what to write."""


_ELSEWHERE = {
    "--label": "labels are a field of the plan: `labels: {customer: acme}`",
    "--queue": "the task queue is a field of the plan or of a step: `queue: gpu`",
    "--budget": "the budget is a field of the plan: `budget: {tokens: 100000}`",
    "--host": "set PLANS_WEB_LISTEN=HOST:PORT",
    "--namespace": "set TEMPORAL_NAMESPACE",
    "--address": "set TEMPORAL_ADDRESS=HOST:PORT",
}
"""By option of other programs, where the same is said here."""


def _needed(context: Any) -> list[str]:
    """The arguments that a command cannot do without, as its help writes them."""
    return [each.strip("{}") for each in context.command.collect_usage_pieces(context) if each.startswith("{")]


def _taken(context: Any) -> list[str]:
    """The arguments of a command, as its help writes them."""
    return [each.strip("{}[]") for each in context.command.collect_usage_pieces(context)[1:]]


def _argument(option: str, taken: list[str]) -> str:
    """The argument that is meant by an option of its name: `STEP.json` by `--step`; empty: none is."""
    name = {"--plan": "id"}.get(option, option.removeprefix("--"))
    return next((each for each in taken if each.partition(".")[0].lower() == name), "")


def _code(error: PlanError) -> int:
    if isinstance(error, (NotConnected, WorkerFailed)):
        return NOT_CONNECTED
    return NOT_FOUND if isinstance(error, PlanNotFound) else BAD_INPUT


def _unforeseen(error: Exception) -> tuple[PlanError, int]:
    """Usage errors of typer, operating system errors, and bugs."""
    if isinstance(error, typer.TyperException):
        text = in_plain_words(error.format_message())
        text = text.removesuffix(" (Possible options: --help)")
        named = re.fullmatch(r"Missing (?:argument|option) '(.+)'\.", text)
        more = f": {_MISSING[named[1]]}" if named and named[1] in _MISSING else ""
        context = getattr(error, "ctx", None)
        if more and context and len(needed := _needed(context)) > 1:
            more += f" (`{context.command_path} {' '.join(needed)}`)"
        if text.startswith("No such option") and "Possible" not in text and context:
            more = f"; `{context.command_path} --help` lists them"
        if (option := re.match(r"No such option: (--\w+)", text)) and option[1] in _ELSEWHERE:
            text, more = f"No such option: {option[1]}", f"; {_ELSEWHERE[option[1]]}"
        elif option and context and (meant := _argument(option[1], taken := _taken(context))):
            text = f"No such option: {option[1]}"
            more = f"; {meant} is an argument: `{context.command_path} {' '.join(taken)}`"
            more += f"; {_MISSING[meant]}" if meant in _MISSING else ""
        if text.startswith("Got unexpected extra argument") and context:
            more = f"; `{context.command_path} --help` shows what it takes"
            if "=" in text and any("--args" in each.opts for each in context.command.params):
                more = "; arguments are one JSON object: --args '{\"NAME\": VALUE}'"
        if text.startswith("No such command") and text.endswith("'.") and context:
            more = f"; `{context.command_path} --help` lists them"
        return PlanError(f"{text.removesuffix('.')}{more}." if more else text, "BAD_USAGE"), BAD_INPUT
    if isinstance(error, OSError):
        return PlanError(str(error), "SYSTEM_ERROR"), ENDED_OTHERWISE
    text = f"{type(error).__name__}: {error}\nThis is a bug; run it with plan --debug for the traceback."
    return PlanError(text, "UNEXPECTED"), ENDED_OTHERWISE
