"""Fills in the form of a question while the live board is off the screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from rich.console import Console
from rich.text import Text

from client.answers.form import Form
from client.cli.follow.board import ASKING
from client.forms.texts import ABSENT
from plans.views.call_text import call_rows
from plans.views.models import PendingView
from plans.views.safe_text import line

ReadLine = Callable[[], Awaitable[str | None]]


async def filled_in(item: PendingView, console: Console, read_line: ReadLine) -> Any:
    """The answer, once one fits; ABSENT if the user gives up with Ctrl-D. The whole question is printed first."""
    form = Form(item.args)
    console.print(Text.assemble(("Answer ", ASKING[1]), (line(item.step_id), "bold"), "   Ctrl-D: later"))
    for row in [*call_rows(item), *form.rows]:
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
