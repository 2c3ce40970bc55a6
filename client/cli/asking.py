"""What the command line shows of a call before a person decides about it: all of it, exactly."""

from __future__ import annotations

from client.calls import file_diffs
from client.cli.session import Connected
from plans.views.call_text import call_rows
from plans.views.models import PendingView
from plans.views.nested.words import quoted
from plans.views.pending import QUESTION
from plans.views.safe_text import exact, line
from runtime.task_queues import serves_this_machine

Details = dict[str, str]
"""Texts to show in place of arguments: the diff of a file."""


async def details(here: Connected, item: PendingView, queue: str | None = None) -> Details:
    """The diff against the present file if the call writes one here. `queue`: the task queue of the call."""
    queue = item.queue or queue
    if item.tool != "write_file" or queue is None or not here.connection.is_on_this_machine:
        return {}
    return file_diffs(item) if await serves_this_machine(here.client, queue) else {}


def question(plan: str, item: PendingView, details: Details) -> list[str]:
    """The rows of a pending decision: whose it is, the whole call, how to decide."""
    rows = [f"  {row}" for row in call_rows(item, details)]
    if item.kind == QUESTION:
        way = f"  plan answer {plan} {quoted(item.step_id)} VALUE"
        return [f"{plan}  {line(item.step_id)}: {reason(item)}", *rows, way]
    named = f" --digest {item.digest}" if item.changed else ""  # or the plan would not know which call is meant
    step = quoted(item.step_id)
    ways = f"  plan approve {plan} {step}{named}   or: plan deny {plan} {step}"
    return [f"{plan}  {line(item.step_id)}: {reason(item)}", *rows, ways]


def reason(item: PendingView) -> str:
    """What the decision is about."""
    if item.kind == QUESTION:
        return "awaiting an answer" + (f" of {exact(str(item.args['to']))}" if item.args.get("to") else "")
    if item.kind == "recovery":
        return "awaiting approval of a recovery"
    return "awaiting approval" if item.kind == "approval" else f"awaiting a decision: {exact(item.kind)}"
