"""A text field for one or more lines. Enter submits a one-line text, ctrl+j inserts a new line."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import TextArea


class Typing(TextArea):
    """A text area that grows with its text, up to a maximum height."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+j", "new_line", show=False)]

    class Entered(Message):
        """Enter was pressed in a one-line text."""

    def __init__(self, text: str = "", **more: Any) -> None:
        super().__init__(text, compact=True, highlight_cursor_line=False, **more)
        self.cursor_blink = False

    def on_key(self, event: Key) -> None:
        """Handle enter in a one-line text; the text area handles all other keys."""
        if event.key == "enter" and self.document.line_count == 1:
            event.prevent_default()
            event.stop()
            self.post_message(self.Entered())

    def action_new_line(self) -> None:
        """Insert a new line."""
        self.insert("\n")
