"""Commands that control a plan: approve, deny, begin, pause, unpause, cancel."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer

from client import runs
from client.cli import output, session
from client.cli.options import AsJson, By, Comment, Id, Step, Version
from client.cli.session import who
from client.ids import plan_id
from client.runs import Choice
from plans.errors import PlanError

Args = Annotated[
    str | None, typer.Option("--args", metavar="JSON", help="Run the step with these arguments, a JSON object.")
]

Verb = Callable[..., Coroutine[Any, Any, str]]
Remember = Annotated[bool, typer.Option("--remember", help="Also approve further calls of this tool in this run.")]


def approve(
    plan: Id, step: Step, by: By = None, comment: Comment = "", args: Args = None, version: Version = None,
    remember: Remember = False, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Approve a step, now or before it awaits approval."""
    choice = Choice(step_id=step, by=by or who(), comment=comment, args=_args(args), version=version, remember=remember)
    sentence = session.run(lambda here: runs.approve(here.client, plan, choice))
    _report(plan, sentence, as_json, stepId=step, approved=True)


def deny(
    plan: Id, step: Step, by: By = None, comment: Comment = "", version: Version = None, as_json: AsJson = False
) -> None:
    """Deny a step: it is skipped, and its dependents are blocked."""
    choice = Choice(step_id=step, by=by or who(), comment=comment, version=version)
    sentence = session.run(lambda here: runs.deny(here.client, plan, choice))
    _report(plan, sentence, as_json, stepId=step, approved=False)


def begin(plan: Id, by: By = None, as_json: AsJson = False) -> None:
    """End the review of a plan: it starts, or continues."""
    _control(plan, runs.begin, by, as_json)


def pause(plan: Id, by: By = None, as_json: AsJson = False) -> None:
    """Pause a plan; running steps continue."""
    _control(plan, runs.pause, by, as_json)


def unpause(plan: Id, by: By = None, as_json: AsJson = False) -> None:
    """Continue a paused plan."""
    _control(plan, runs.unpause, by, as_json)


def cancel(plan: Id, as_json: AsJson = False) -> None:
    """Cancel a plan; running steps clean up first."""
    session.run(lambda here: runs.cancel(here.client, plan))
    _report(plan, "cancelling; running steps clean up first", as_json)


def _control(plan: str, verb: Verb, by: str | None, as_json: bool) -> None:
    _report(plan, session.run(lambda here: verb(here.client, plan, by or who())), as_json)


def _report(plan: str, sentence: str, as_json: bool, **found: Any) -> None:
    if as_json:
        output.show_json({"planId": plan_id(plan), **found, "message": sentence})
    else:
        output.show(f"{plan_id(plan)}: {sentence}")


def _args(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise PlanError(f"--args is not valid JSON: {error}", "INVALID_ARGS") from error
    if not isinstance(found, dict):
        raise PlanError('--args is not a JSON object; write {"name": value}', "INVALID_ARGS")
    return found
