"""The question of the live board: a window on the rows of one pending call.

Approval counts only once every row has been on the screen, however long the call is. Pure: knows no terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from plansurvive.client.decide.shown import styles
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows, folded_rows


class Question:
    """One pending call, and how many of its rows have been shown."""

    def __init__(self, item: Card) -> None:
        self.item, self._call = item, tuple(call_rows(item))
        self._rows: Sequence[str] = ()
        self._styles: Sequence[str] = ()
        self._width = self._height = self._top = self._shown = 0

    @property
    def is_read(self) -> bool:
        """Whether every row has been shown."""
        return 0 < len(self._rows) <= self._shown

    def window(self, width: int, height: int) -> tuple[list[str], str]:
        """The rows to draw, at most `height` of them, and where they are in the whole; empty if that is all of it."""
        if width != self._width:
            self._rows, self._width = folded_rows(self._call, width, cell_len), width
            self._styles = styles(self._rows, self.item)
            self._top = self._shown = 0
        self._height = max(1, height)
        self._top = max(0, min(self._top, len(self._rows) - self._height))
        end = min(len(self._rows), self._top + self._height)
        self._shown = max(self._shown, end)
        is_whole = len(self._rows) <= self._height
        return list(self._rows[self._top : end]), "" if is_whole else f"rows {self._top + 1}-{end} of {len(self._rows)}"

    def drawn(self) -> list[Text]:
        """The rows of the window as it was asked for last, coloured."""
        shown = slice(self._top, self._top + self._height)
        pairs = zip(self._rows[shown], self._styles[shown], strict=True)
        return [Text(row, style, no_wrap=True) for row, style in pairs]

    def scroll(self, pages: int) -> None:
        """Move the window by pages; never past rows that were not shown."""
        self._top = max(0, min(self._top + pages * self._height, self._shown))
