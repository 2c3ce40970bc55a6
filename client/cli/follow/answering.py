"""What a user types about a pending decision while the live board is off the screen: an answer, a reason, arguments.

Each function prints what it is about, reads, and sends; it returns the plan's sentence, empty if the user left it for
later. Raises PlanError.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text
from temporalio.client import Client

from plansurvive.client.cli.terminal.asking import coloured
from plansurvive.client.cli.terminal.output import fitted
from plansurvive.client.decide.changed_call import is_same, with_args
from plansurvive.client.forms.editor import let_edit
from plansurvive.client.forms.question import Form
from plansurvive.client.forms.texts import ABSENT
from plansurvive.client.live.marks import ASKING
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import Choice
from plansurvive.plans.definition.plain_words import json_problem
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows

ReadLine = Callable[[], Awaitable[str | None]]
"""Reads one line; None at its end (Ctrl-D)."""


class Asked(NamedTuple):
    """A pending decision, and who is deciding."""

    client: Client
    plan: str
    who: str
    item: Card
    compare: Callable[[Card], Awaitable[Card]]
    """Adds what a call would change in a file as it is now."""


Decide = Callable[[Asked, Console, ReadLine], Awaitable[str]]


async def answered(asked: Asked, console: Console, read_line: ReadLine) -> str:
    """Fill in the form of a question and send the answer."""
    value = await filled_in(asked.item, console, read_line)
    if value is ABSENT:
        return ""
    digest = asked.item.digest or None
    return await runs.answer(asked.client, asked.plan, asked.item.step_id, value, by=asked.who, digest=digest)


async def commented(asked: Asked, console: Console, read_line: ReadLine) -> str:
    """Deny a step, with the reason for the plan's log."""
    _head(console, "Deny ", asked.item, "Ctrl-D: later")
    console.print(Text("Why? ", style="bold"), end="")
    comment = await read_line()
    if comment is None:
        console.print()
        return ""
    choice = Choice(step_id=asked.item.step_id, by=asked.who, comment=comment.strip()).naming(asked.item)
    return await runs.deny(asked.client, asked.plan, choice)


async def edited(asked: Asked, console: Console, read_line: ReadLine) -> str:
    """Have the arguments edited in $VISUAL or $EDITOR, and approve the step with those, once they were shown."""
    before = json.dumps(asked.item.args, indent=2, ensure_ascii=False, default=str)
    is_plain = all(char.isprintable() or char == "\n" for char in before)
    text = before if is_plain else json.dumps(asked.item.args, indent=2, default=str)
    args = _args(await asyncio.to_thread(let_edit, text + "\n"))
    if is_same(asked.item, args):
        return "The arguments are as before; nothing was decided."
    _head(console, "Approve ", asked.item, "with these arguments instead:")
    console.print(coloured(await asked.compare(with_args(asked.item, args)), why=False), soft_wrap=True)
    console.print(Text("Approve exactly this? y: yes, anything else: no decision ", style="bold"), end="")
    said = await read_line()
    if said is None:
        console.print()
    if (said or "").strip().lower() not in ("y", "yes"):
        return "Nothing was decided."
    choice = Choice(step_id=asked.item.step_id, by=asked.who, args=args).naming(asked.item)
    return await runs.approve(asked.client, asked.plan, choice)


def _args(text: str) -> dict[str, Any]:
    """The arguments in an edited text. Raises PlanError."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise PlanError(
            f"the text is not valid JSON: {json_problem(error)}; nothing was decided", "INVALID_ARGS"
        ) from None
    if not isinstance(found, dict):
        raise PlanError("write one JSON object with the arguments; nothing was decided", "INVALID_ARGS")
    return found


def _head(console: Console, verb: str, item: Card, hint: str) -> None:
    console.print(Text.assemble((verb, ASKING[1]), (line(item.step_id), "bold"), f"   {hint}"))


async def filled_in(item: Card, console: Console, read_line: ReadLine) -> Any:
    """The answer, once one fits; ABSENT if the user gives up with Ctrl-D. The whole question is printed first."""
    form = Form(item.args)
    _head(console, "Answer ", item, "Ctrl-D: later")
    for row in [*fitted(call_rows(item)), *form.rows]:
        console.print(Text(row), soft_wrap=True)
    while not form.is_done:
        console.print(Text(form.prompt, style="bold"), end="", soft_wrap=True)
        text = await read_line()
        if text is None:
            console.print()
            return ABSENT
        why = form.enter(text)
        if why:
            console.print(Text(f"  {line(why)}", style="yellow"), soft_wrap=True)
    return form.value
