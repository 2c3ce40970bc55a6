"""Commands for steps that ask or wait: answer, event."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from plansurvive.client.children.naming import no_such_step
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson, By, Digest, Id, Step
from plansurvive.client.cli.terminal.session import Connected, author
from plansurvive.client.forms.question import Form
from plansurvive.client.ids import plan_id, recorded_id
from plansurvive.client.rpc import ask_view
from plansurvive.client.verbs import runs
from plansurvive.features.waiting.language import name_problem
from plansurvive.features.waiting.messages import KEPT
from plansurvive.plans.definition.plain_words import json_problem
from plansurvive.plans.definition.questions import ASK, value_of
from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.text.safe_text import line, quoted
from plansurvive.plans.views.models import BriefView, CallView, listed_steps
from plansurvive.plans.views.queries import BRIEF
from plansurvive.plans.views.steps.call_text import call_rows
from plansurvive.plans.views.summary import AskedStep

NAMED = 5
"""Steps that wait for other events, named one by one."""
Value = Annotated[
    str | None,
    typer.Argument(metavar="VALUE", help="The answer, as JSON if the question wants that, else as text; - reads it."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the event, such as order.paid.")]
Data = Annotated[str | None, typer.Option("--data", metavar="JSON", help="Data of the event, any JSON value.")]


def answer(
    plan: Id, step: Step, value: Value = None, by: By = None, digest: Digest = None, as_json: AsJson = False
) -> None:
    """Answer the question of a step, now or before it asks. Without VALUE, a form on the terminal asks for it."""
    text = sys.stdin.read() if value == "-" else value
    if text is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise typer.BadParameter("the answer is missing: plan answer ID STEP VALUE", param_hint="VALUE")
    if text is None:
        item = session.run(lambda here: _question(here, plan, step))
        given = fill_in(item)
        sentence = session.run(lambda here: _send(here, plan, step, item, given, by, digest))
    else:
        sentence = session.run(lambda here: _answer(here, plan, step, text, by, digest))
    _report(plan, sentence, as_json, stepId=step)


def event(plan: Id, name: Name, data: Data = None, by: By = None, as_json: AsJson = False) -> None:
    """Send an event to a plan, for the steps that wait for it. Those of its child plans receive it too.

    An event that arrives early counts as well.
    """
    found = _json(data) if data is not None else None
    if why := name_problem(name):
        raise PlanError(why, "BAD_MESSAGE")
    sentence = session.run(lambda here: _event(here, plan, name, found, author(by)))
    _report(plan, sentence, as_json, name=name)


def fill_in(item: CallView) -> Any:
    """Ask on the terminal, until the answer fits."""
    form = Form(item.args)
    output.say("\n".join([*output.fitted(call_rows(item)), *form.rows]))
    while not form.is_done:
        why = form.enter(typer.prompt(form.prompt, prompt_suffix="", default="", show_default=False))
        if why:
            output.say(why)
    return form.value


async def _question(here: Connected, plan: str, step: str) -> CallView:
    """What the step asks. Raises Refused if it asks nothing."""
    item = await runs.call(here.client, plan, step)
    if item is None:
        raise await no_such_step(here.client, plan, step)
    if item.tool != ASK and not item.is_question:
        raise Refused(f"step '{item.step_id}' asks no question; {_instead(item, plan_id(plan))}", "NOT_A_QUESTION")
    return item


def _instead(item: CallView, plan: str) -> str:
    """What to do about a step that asks no question."""
    if item.kind == "approval" and not item.decided:
        return f"it awaits approval: {item.command(plan)}"
    return f"see: plan show {plan} {item.step_id}"


async def _answer(here: Connected, plan: str, step: str, text: str, by: str | None, digest: str | None) -> str:
    item = await _question(here, plan, step)
    if item.is_question:
        output.say("\n".join(output.fitted(call_rows(item))))
    return await _send(here, plan, step, item, value_of(item.args, text), by, digest)


async def _send(
    here: Connected, plan: str, step: str, item: CallView, value: Any, by: str | None, digest: str | None
) -> str:
    """Send the answer to exactly this question."""
    digest = digest or (item.digest if item.is_question else None)
    return await runs.answer(here.client, plan, step, value, by=author(by), digest=digest)


async def _event(here: Connected, plan: str, name: str, data: Any, by: str) -> str:
    """Send an event; one that no step waits for may be misspelt, so those that steps wait for are named."""
    sentence = await runs.event(here.client, plan, name, data, by=by)
    if sentence.endswith(KEPT):
        asks = await _waiting(here, plan)
        known = {each.step_id for each in asks}
        waits = ", ".join(f"'{line(each.step_id)}' waits for {quoted(each.event)}" for each in asks[:NAMED])
        output.say(f"No step waits for this event now{f'; {waits}' if waits else ''}.")
        for path, child in await _running_below(here, plan):
            for each in [] if path in known else (await _waiting(here, child))[:NAMED]:
                words = f"In the child plan of '{line(path)}', step '{line(each.step_id)}' waits for an event:"
                output.say(f"{words} plan event {line(child)} {quoted(each.event)}")
    return sentence


async def _waiting(here: Connected, plan: str) -> list[AskedStep]:
    return [each for each in (await runs.summary(here.client, plan)).asks if each.kind == "event" and each.event]


async def _running_below(here: Connected, plan: str) -> list[tuple[str, str]]:
    """Some child plans that run, with the paths of their steps.

    What the plan does not know them to wait for, it does not pass on to them: where events count only signed, and to
    child plans that a worker of 1.0.0 began.
    """
    view = await ask_view(here.client, plan, BriefView, "plan", BRIEF)
    steps = listed_steps(view.steps)
    running = [(each.id, each.child.plan_id) for each in steps if each.child and each.child.status == "running"]
    return [(path, name) for path, child in running[:NAMED] if (name := recorded_id(child))]


def _report(plan: str, sentence: str, as_json: bool, **found: Any) -> None:
    if as_json:
        output.show_json({"planId": plan_id(plan), **found, "message": sentence})
    else:
        output.show(f"{plan_id(plan)}: {sentence}")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise PlanError(f"--data is not valid JSON: {json_problem(error)}", "INVALID_ARGS") from error
