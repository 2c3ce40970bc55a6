"""Dialogs of the review screen: confirmation, text input, tool picker, text viewer. Escape closes each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from plansurvive.apps.review.text_field import Typing
from plansurvive.client.decide.shown import styles
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows, folded_rows, value_rows


class Confirm(ModalScreen[bool]):
    """A yes-or-no question, answered with y or n."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "answer(True)"), Binding("n,escape", "answer(False)")]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question and its two answers."""
        with Vertical(classes="box"):
            yield Static(Text(self._question), classes="title")
            yield Static(Text("y yes   n no"), classes="hint")

    def action_answer(self, answer: bool) -> None:
        """Close the dialog with the answer."""
        self.dismiss(answer)


class Approve(ModalScreen[bool]):
    """A pending call in full; y counts once its end has been on the screen. False: not approved.

    `edits`: rows that say how it differs from the call that was asked about, if somebody has changed it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "approve"), Binding("escape,q", "leave"),
        Binding("space,d", "page(1)"), Binding("minus,u", "page(-1)"),
    ]  # fmt: skip

    def __init__(self, item: Card, *, always: bool = False, edits: Sequence[str] = ()) -> None:
        super().__init__()
        self._item, self._always, self._is_edited = item, always, bool(edits)
        self._rows, self._is_drawn = [*edits, *call_rows(item)], False
        if always:
            self._rows += value_rows("always", item.always)

    def compose(self) -> ComposeResult:
        """The call, and the keys."""
        with Vertical(classes="box tall"):
            verb = "Always approve" if self._always else "Approve"
            how = " with these arguments" if self._is_edited else ""
            title = f"{verb} step '{line(self._item.step_id)}'{how}? Read all of it first."
            yield Static(Text(title), classes="title")
            with VerticalScroll(classes="reading"):
                yield Static(id="call")
            yield Static(Text("space more   - back   y approve, at the end   escape back"), classes="hint")

    def on_mount(self) -> None:
        """Draw the call once its width is known."""
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        """Fold the rows at the new width."""
        self.call_after_refresh(self._draw)

    def action_page(self, by: int) -> None:
        """Scroll by a page, of which one row stays."""
        place = self._place
        place.scroll_relative(y=by * max(1, place.scrollable_content_region.height - 1), animate=False)

    def action_approve(self) -> None:
        """Close with the approval, unless the call goes on below the screen."""
        place = self._place
        if self._is_drawn and place.scroll_y >= place.max_scroll_y:
            self.dismiss(True)

    def action_leave(self) -> None:
        """Back to the plan, without a decision."""
        self.dismiss(False)

    @property
    def _place(self) -> VerticalScroll:
        return self.query_one(VerticalScroll)

    def _draw(self) -> None:
        width = self._place.scrollable_content_region.width - 1
        rows = folded_rows(self._rows, width, cell_len)
        pairs = zip(rows, styles(rows, self._item), strict=True)
        text = Text("\n").join(Text(row, style, no_wrap=True) for row, style in pairs)
        self.query_one("#call", Static).update(text)
        self.call_after_refresh(self._note_drawn)

    def _note_drawn(self) -> None:
        self._is_drawn = True


class AskText(ModalScreen[str | None]):
    """Asks for a text of one or more lines; None if cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "send", priority=True), Binding("escape", "leave")]

    def __init__(self, question: str, text: str = "") -> None:
        super().__init__()
        self._question, self._text = question, text

    def compose(self) -> ComposeResult:
        """The question and a text field."""
        with Vertical(classes="box"):
            yield Static(Text(self._question), classes="title")
            yield Typing(self._text, id="text")
            yield Static(Text("ctrl+s send   ctrl+j new line   escape back"), classes="hint")

    def on_typing_entered(self) -> None:
        """Enter sends a text of one line."""
        self.action_send()

    def action_send(self) -> None:
        """Return the text, unless it is blank."""
        text = self.query_one(Typing).text
        if text.strip():
            self.dismiss(text)

    def action_leave(self) -> None:
        """Cancel: return None."""
        self.dismiss(None)


class PickTool(ModalScreen[str | None]):
    """Tool picker with a search over names and descriptions; None if cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave"),
        Binding("down", "move(1)", priority=True),
        Binding("up", "move(-1)", priority=True),
    ]

    def __init__(self, tools: Mapping[str, ToolSpec]) -> None:
        super().__init__()
        self._tools = tools

    def compose(self) -> ComposeResult:
        """A search field and the matching tools."""
        with Vertical(classes="box"):
            yield Static(Text("Which tool? Type to search, enter selects"), classes="title")
            typed = Input(compact=True)
            typed.cursor_blink = False  # each blink is a redraw, which slow terminals show
            yield typed
            yield OptionList(markup=False)

    def on_mount(self) -> None:
        """List all tools."""
        self._offer("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """List the tools that match the search."""
        self._offer(event.value.lower())

    def on_input_submitted(self) -> None:
        """Return the highlighted tool."""
        option = self.query_one(OptionList).highlighted_option
        if option:
            self.dismiss(option.id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Return the selected tool."""
        self.dismiss(event.option.id)

    def action_move(self, by: int) -> None:
        """Highlight the next or previous tool."""
        found = self.query_one(OptionList)
        if by > 0:
            found.action_cursor_down()
        else:
            found.action_cursor_up()

    def action_leave(self) -> None:
        """Cancel: return None."""
        self.dismiss(None)

    def _offer(self, wanted: str) -> None:
        found = self.query_one(OptionList)
        fit = [spec for name, spec in self._tools.items() if wanted in f"{name} {spec.description}".lower()]
        fit.sort(key=lambda spec: wanted not in spec.name)
        found.set_options(
            Option(Text(f"{spec.name:<18} {line(spec.description)}", no_wrap=True), id=spec.name) for spec in fit
        )
        found.highlighted = 0 if fit else None


class Reading(ModalScreen[None]):
    """A scrollable text."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "leave")]

    def __init__(self, title: str, text: Text) -> None:
        super().__init__()
        self._heading, self._text = title, text

    def compose(self) -> ComposeResult:
        """Title, text and key hints."""
        with Vertical(classes="box tall"):
            yield Static(Text(self._heading), classes="title")
            with VerticalScroll(classes="reading"):
                yield Static(self._text)
            yield Static(Text("arrows and page keys scroll   escape back"), classes="hint")

    def action_leave(self) -> None:
        """Back to the plan."""
        self.dismiss(None)
