"""Maps every error of a command to a message and an exit code (`client.cli.app` lists the codes)."""

from __future__ import annotations

import errno
import re
from typing import Any

import typer

from plansurvive.client.cli.terminal import output
from plansurvive.client.cli.terminal.usage import arguments_of
from plansurvive.client.errors import PlanNotFound, PlanRefused
from plansurvive.plans.definition.near_names import Hints
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
    "--yes": "`plan run FILE --yes` approves every step of a plan in advance",
    "approve --yes": "`plan approve` does not ask, so there is nothing to confirm",
    "deny --yes": "`plan deny` does not ask, so there is nothing to confirm",
    "cancel --yes": "`plan cancel` does not ask, so there is nothing to confirm",
    "list --all": "`plan list` lists plans of every status; --limit N lists more than the newest 20",
    "pending --all": "`plan pending` lists the decisions of all plans",
    "cancel --all": "`plan cancel ID` ends one plan; `plan list --running` lists those to end",
    **dict.fromkeys(
        ("run -d", "run --detach", "run --detached", "run --background", "run --no-wait"),
        "`plan start FILE` runs a plan in the background",
    ),
    "--verbose": "`plan watch ID` and `plan logs ID STEP` show what happens, `plan --debug` the tracebacks of errors",
    "--quiet": "`--json` prints data alone",
    "--reason": "a reason is given with --comment TEXT",
    "--message": "a reason is given with --comment TEXT",
}
"""By option of other programs, or command and option, where the same is said here."""


_SHORT = {
    "-w": ("--workspace", "--watch"), "-o": ("--out",), "-n": ("--limit", "--name"), "-y": ("--yes",),
    "-f": ("--follow", "--file"), "-j": ("--json",), "-m": ("--comment",), "-i": ("--input",), "-l": ("--label",),
    "-p": ("--port",), "-t": ("--timeout",),
}  # fmt: skip
"""By short option of other programs, the options that are meant, of which a command has one or none."""


def _needed(context: Any) -> list[str]:
    """The arguments that a command cannot do without, as its help writes them."""
    return [each.strip("{}") for each in context.command.collect_usage_pieces(context) if each.startswith("{")]


def _argument(option: str, taken: list[str]) -> str:
    """The argument that is meant by an option of its name: `STEP.json` by `--step`; empty: none is."""
    name = {"--plan": "id"}.get(option, option.removeprefix("--"))
    return next((each for each in taken if each.partition(".")[0].lower() == name), "")


def _no_option(name: str, context: Any) -> tuple[str, str]:
    """What is said of an option that a command does not have, and what to write instead."""
    known = [each for param in context.command.get_params(context) for each in param.opts if each.startswith("--")]
    command = context.command_path.partition(" ")[2]
    if own := _ELSEWHERE.get(f"{command} {name}"):
        return f"No such option: {name}", f"; {own}"
    # Of a single letter nothing is near.
    near = Hints().near(name.lstrip("-"), [each.removeprefix("--") for each in known]) if len(name) > 2 else ""
    long = _SHORT.get(name, ())
    if meant := f"--{near}" if near else next((each for each in long if each in known), ""):
        return f"No such option: {name}", f"; did you mean {meant}?"
    for option in (*(f"{command} {each}" for each in long), name, *long):
        if option in _ELSEWHERE:
            return f"No such option: {name}", f"; {_ELSEWHERE[option]}"
    taken = arguments_of(context)
    if meant := next((found for each in (name, *long) if (found := _argument(each, taken))), ""):
        more = f"; {meant} is an argument: `{context.command_path} {' '.join(taken)}`"
        return f"No such option: {name}", more + (f"; {_MISSING[meant]}" if meant in _MISSING else "")
    return f"No such option: {name}", f"; `{context.command_path} --help` lists them"


def _code(error: PlanError) -> int:
    if isinstance(error, (NotConnected, WorkerFailed)):
        return NOT_CONNECTED
    return NOT_FOUND if isinstance(error, PlanNotFound) else BAD_INPUT


def _sentence(text: str, more: str) -> str:
    if not more:
        return text
    return f"{text.removesuffix('.')}{more}" + ("" if more.endswith("?") else ".")


def _of_system(error: OSError) -> str:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return str(error)
    what = f"'{error.filename}'" if error.filename else "what this command writes"
    return f"there is no space left for {what}; free some on that disk"


def _unforeseen(error: Exception) -> tuple[PlanError, int]:
    """Usage errors of typer, operating system errors, and bugs."""
    if isinstance(error, typer.TyperException):
        text = in_plain_words(error.format_message())
        named = re.fullmatch(r"Missing (?:argument|option) '(.+)'\.", text)
        more = f": {_MISSING[named[1]]}" if named and named[1] in _MISSING else ""
        context = getattr(error, "ctx", None)
        if more and context and len(needed := _needed(context)) > 1:
            more += f" (`{context.command_path} {' '.join(needed)}`)"
        if context and isinstance(name := getattr(error, "option_name", None), str) and text.startswith("No such"):
            text, more = _no_option(name, context)
        if text.startswith("No such command") and text.endswith("'.") and context:
            more = f"; `{context.command_path} --help` lists them"
        return PlanError(_sentence(text, more), "BAD_USAGE"), BAD_INPUT
    if isinstance(error, OSError):
        return PlanError(_of_system(error), "SYSTEM_ERROR"), ENDED_OTHERWISE
    text = f"{type(error).__name__}: {error}\nThis is a bug; run it with plan --debug for the traceback."
    return PlanError(text, "UNEXPECTED"), ENDED_OTHERWISE
