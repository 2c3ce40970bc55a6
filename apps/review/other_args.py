"""Approving with other arguments from the review screen: typed in a form, shown as the whole call, then approved.

What is shown is what is sent. Until then nothing is decided, and what was typed is offered again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from plansurvive.apps.review.dialogs import Approve
from plansurvive.apps.review.plan_screen import LivePlan
from plansurvive.apps.review.step_form import FieldRow
from plansurvive.client import runs
from plansurvive.client.decide.changed_call import edit_rows, is_same, with_args
from plansurvive.client.forms.flat import flat_fields
from plansurvive.client.forms.texts import ABSENT, Unreadable
from plansurvive.client.runs import Choice
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.text.safe_text import line, safe
from plansurvive.plans.views.models.card import Card

Compare = Callable[[Card], Awaitable[Card]]
"""The card with what its call would change in a file as it is now (`Card.change`)."""


class ArgsForm(ModalScreen[dict[str, Any] | None]):
    """The arguments of a pending call in a form, one field for each; None if the user leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "show", priority=True), Binding("escape", "leave")]

    def __init__(self, item: Card, spec: ToolSpec | None, args: Mapping[str, Any], said: str) -> None:
        super().__init__()
        self._item, self._said = item, said
        self._fields = {field.name: field for field in flat_fields(spec.args_schema if spec else None, args)}
        self._sure = False

    def compose(self) -> ComposeResult:
        """Heading, fields, a remark, keys."""
        with Vertical(classes="box tall"):
            title = f"Approve step '{line(self._item.step_id)}' with other arguments  {line(self._item.tool)}"
            yield Static(Text(title), classes="title")
            with VerticalScroll(can_focus=False):
                for name, field in self._fields.items():
                    yield FieldRow(name, field)
            yield Static(Text(safe(self._said)), id="said")
            yield Static(Text("ctrl+s show it   tab next field   ctrl+j new line   escape back"), classes="hint")

    def on_mount(self) -> None:
        """Hide the remarks that nobody has made, and focus the first argument."""
        for number, row in enumerate(self.query(FieldRow)):
            row.show(row.text, "")
            if number == 0:
                row.query_one("#value", Widget).focus()

    def on_typing_entered(self) -> None:
        """Enter in a one-line text moves to the next field."""
        self.focus_next()

    def action_show(self) -> None:
        """Close with the arguments, unless a field cannot be read: then say why below it."""
        args: dict[str, Any] = {}
        wrong: dict[str, str] = {}
        for row in self.query(FieldRow):
            try:
                args[row.key] = self._fields[row.key].read(row.text, references=True)
            except Unreadable as error:
                wrong[row.key] = str(error)
        for row in self.query(FieldRow):
            row.show(row.text, f"✗ {wrong[row.key]}" if row.key in wrong else "")
        if wrong:
            self._say("See the fields marked ✗.")
        else:
            self.dismiss({name: value for name, value in args.items() if value is not ABSENT})

    def action_leave(self) -> None:
        """Close without a decision; asks once more if something was typed."""
        if self._sure or all(row.text == self._fields[row.key].text for row in self.query(FieldRow)):
            self.dismiss(None)
            return
        self._sure = True
        self._say("Nothing is approved. Press escape again to discard what you typed, ctrl+s to see the call.")

    def _say(self, sentence: str) -> None:
        self.query_one("#said", Static).update(Text(sentence))


async def approved_with_others(
    screen: LivePlan, item: Card, typed: dict[str, dict[str, Any]], compare: Compare | None
) -> str:
    """Let the user change the arguments of a call and approve exactly those; returns what became of it.

    `typed`: by step, arguments that were typed and not sent; they fill the form, and stay there until they are sent.
    """
    spec, said = screen.tools.get(item.tool), ""
    while True:
        form = ArgsForm(item, spec, typed.get(item.step_id, item.args), said)
        args = await screen.push_screen_wait(form)
        if args is None:
            typed.pop(item.step_id, None)
            return "Nothing was decided."
        if is_same(item, args):
            said = "These are the arguments of the call: change them, or leave with escape and approve it with y."
            continue
        typed[item.step_id], said = args, ""
        changed = with_args(item, args)
        changed = await compare(changed) if compare is not None else changed
        if not await screen.push_screen_wait(Approve(changed, edits=edit_rows(item, args))):
            continue
        if item not in screen.view.pending:
            return f"Step '{item.step_id}' has changed in the meantime: read it again. e offers what you typed."
        choice = Choice(step_id=item.step_id, by=screen.who, args=args).naming(item)
        try:
            await runs.decide(screen.client, screen.plan, choice, approved=True)
        except PlanError as error:
            await screen.refresh_view()
            if item not in screen.view.pending:
                return f"Not approved: {error.message}"
            said = f"Not approved: {error.message}"
            continue
        typed.pop(item.step_id)
        await screen.refresh_view()
        return f"Step '{item.step_id}' was approved with other arguments."
