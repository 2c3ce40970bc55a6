"""Commands that control a plan: approve, deny, begin, pause, unpause, clear-session, cancel."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any

import typer
from temporalio.client import Client, WorkflowExecutionStatus

from plansurvive.client.children.naming import located
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.asking import coloured, compared
from plansurvive.client.cli.terminal.options import AsJson, By, Comment, Digest, Id, Step, Version, json_object
from plansurvive.client.cli.terminal.session import Connected, author
from plansurvive.client.closed import closed
from plansurvive.client.decide.changed_call import with_args
from plansurvive.client.ids import plan_id
from plansurvive.client.rpc import describe
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import Choice
from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.flow.ids import is_pattern
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows

Args = Annotated[
    str | None, typer.Option("--args", metavar="JSON", help="Run the step with these arguments, a JSON object.")
]

Verb = Callable[..., Coroutine[Any, Any, str]]
Remember = Annotated[bool, typer.Option("--remember", help="Also approve further calls of this tool in this run.")]
Override = Annotated[
    bool,
    typer.Option(
        "--override",
        help="Approve alone, in place of all who must, where policy.toml lets you; --comment says why.",
    ),
]


def approve(
    plan: Id, step: Step, by: By = None, comment: Comment = "", args: Args = None, version: Version = None,
    digest: Digest = None, remember: Remember = False, override: Override = False, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Approve a step, now or before it awaits approval. Shows the call that is approved."""
    named: dict[str, Any] = {"version": version, "digest": digest, "remember": remember, "override": override}
    choice = Choice(
        step_id=step,
        by=author(by),
        comment=comment,
        args=None if args is None else json_object(args, "--args"),
        **named,
    )
    sentence = session.run(lambda here: _decide(here, plan, choice, approved=True))
    _report(plan, sentence, as_json, stepId=step, approved=True)


def deny(
    plan: Id, step: Step, by: By = None, comment: Comment = "", version: Version = None, digest: Digest = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Deny a step: it is skipped, and its dependents are blocked."""
    choice = Choice(step_id=step, by=author(by), comment=comment, version=version, digest=digest)
    sentence = session.run(lambda here: _decide(here, plan, choice, approved=False))
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


def clear_session(plan: Id, by: By = None, as_json: AsJson = False) -> None:
    """Forget which files and agents.md a plan has seen. An agent has its own session: name its id."""
    _control(plan, runs.clear_session, by, as_json)


def cancel(plan: Id, as_json: AsJson = False) -> None:
    """Cancel a plan; running steps clean up first."""
    session.run(lambda here: runs.cancel(here.client, plan))
    _report(plan, "cancelling; running steps clean up first", as_json)


def _control(plan: str, verb: Verb, by: str | None, as_json: bool) -> None:
    _report(plan, session.run(lambda here: verb(here.client, plan, author(by))), as_json)


async def _decide(here: Connected, plan: str, choice: Choice, *, approved: bool) -> str:
    """Show the call and send a decision about exactly this. Raises Refused where a person must look first."""
    client, known = here.client, await describe(here.client, plan)
    if known.status is not WorkflowExecutionStatus.RUNNING:
        step_id = choice.step_id
        if not is_pattern(step_id):
            plan, step_id = await located(client, plan, step_id)
        raise await closed(client, plan, {"stepId": step_id})
    if is_pattern(choice.step_id):
        return await _decide_all(client, plan, choice, approved=approved)
    asked = await runs.call(client, plan, choice.step_id)
    if asked is not None and asked.decided:
        raise Refused(asked.decided, "ALREADY_DECIDED")
    if asked is not None:
        others = with_args(asked, choice.args) if choice.args is not None and asked.takes_args else None
        # Of two calls, only the one that will run is compared with the file: the other is not approved.
        output.remark(coloured(asked if others else await compared(here, asked, known.task_queue)))
        if choice.remember and asked.always:
            output.say("\n".join(output.wrapped("Approved with it:", line(asked.always))))
        if others is not None:
            output.say("With these arguments instead:")
            output.remark(coloured(await compared(here, others, known.task_queue), why=False))
    if asked is not None and choice.digest is None:
        if approved and asked.changed and choice.version is None:
            text = "has changed since it was first asked, or since the plan was started; this is what it would do now"
            how = f"To approve exactly this: {asked.command(plan_id(plan))}"
            raise Refused(f"step '{asked.step_id}' {text}. {how}", "DIGEST_REQUIRED")
        choice = choice.naming(asked)
    return await (runs.approve if approved else runs.deny)(client, plan, choice)


async def _decide_all(client: Client, plan: str, choice: Choice, *, approved: bool) -> str:
    """Show the calls of all items that await approval, and decide about exactly these."""
    if choice.args is not None or choice.digest is not None:
        raise PlanError("--args and --digest are for one step, not for a pattern", "INVALID_ARGS")

    def show(items: Sequence[Card]) -> None:
        for item in items:
            rows = output.fitted(call_rows(item), 2)
            output.say("\n".join([f"{line(item.step_id)}:", *(f"  {row}" for row in rows)]))

    count, refused = await runs.decide_all(client, plan, choice, approved=approved, show=show)
    for name, why in refused.items():
        output.say(f"Not decided: {line(name)}: {line(why)}")
    verb = "approved" if approved else "denied"
    return f"{number_of(count, 'step')} '{choice.step_id}' {verb}{f' by {choice.by}' if choice.by else ''}"


def _report(plan: str, sentence: str, as_json: bool, **found: Any) -> None:
    if as_json:
        output.show_json({"planId": plan_id(plan), **found, "message": sentence})
    else:
        output.show(f"{plan_id(plan)}: {sentence}")
