"""A place to type a text of one line or of many. Enter moves on in a text of one line, ctrl+j begins a new line."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea


class Typing(TextArea):
    """A text as it is typed: as high as it needs to be, up to a limit."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+j", "new_line", show=False)]

    class Entered(Message):
        """Enter was pressed in a text of one line."""

    def __init__(self, text: str = "", **more: Any) -> None:
        super().__init__(text, compact=True, highlight_cursor_line=False, **more)
        self.cursor_blink = False

    def on_key(self, event: Key) -> None:
        """Enter in a text of one line; every other key goes on to the text area."""
        if event.key == "enter" and self.document.line_count == 1:
            event.prevent_default()
            event.stop()
            self.post_message(self.Entered())

    def action_new_line(self) -> None:
        """Begin a new line."""
        self.insert("\n")
