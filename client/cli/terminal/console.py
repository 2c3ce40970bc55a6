"""The console that all text output of the command line goes through: it escapes, so that no renderer has to.

Ids, titles and names come from whoever can start a workflow or a schedule. A control, invisible or direction character
in them is shown as `\\uXXXX`. A row of a table stays one row: line breaks in a cell become spaces. Cells of columns
that do not wrap end after MAX_CELL columns, and when such columns do not fit, the widest become narrower first. Line
breaks outside tables are the caller's: a name inside a sentence goes through `line`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from plansurvive.plans.text.safe_text import safe

MAX_CELL = 200
"""Width at which a cell that does not wrap is cut, in columns of a terminal: no id of a plan is longer."""
WRAPPED = 12
"""Columns of a terminal that are left for a column that wraps, when others are too wide."""


class SafeConsole(Console):
    """A rich console that prints no control character of a text, wherever the text is in what is printed.

    In a file or a pipe, rows of a table end without the blanks that fill its last column.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich does, but texts as safe copies, so that the layout is that of what is shown."""
        if isinstance(renderable, Table):
            _prepare(renderable, (options or self.options).max_width)
        elif isinstance(renderable, Text):
            renderable = _escaped(renderable)
        segments = super().render(renderable, options)
        if isinstance(renderable, Table) and not self.is_terminal:
            segments = _unfilled(segments)
        for segment in segments:
            yield segment if segment.control else segment._replace(text=safe(segment.text))


def _unfilled(segments: Iterable[Segment]) -> Iterable[Segment]:
    """The rows of a table without blanks at their ends."""
    for row in Segment.split_lines(segments):
        while row and not row[-1].text.strip(" "):
            row.pop()
        yield from row[:-1]
        yield from (last._replace(text=last.text.rstrip(" ")) for last in row[-1:])
        yield Segment.line()


def _prepare(table: Table, width: int) -> None:
    """Make the cells of a table safe and of one line, and its columns narrow enough for the table to fit."""
    for column in table.columns:
        column._cells = [_cell(cell, column) for cell in column._cells]
    if not table.expand:
        _, right, _, left = table.padding
        _fit(table.columns, width - (left + right) * len(table.columns))


def _cell(cell: RenderableType, column: Column) -> RenderableType:
    if not isinstance(cell, (str, Text)):
        return cell
    text = Text(cell) if isinstance(cell, str) else cell.copy()
    text.plain = text.plain.replace("\n", " ")  # of the same length, so that styles stay where they are
    text = _escaped(text)
    if column.no_wrap:
        text.truncate(MAX_CELL, overflow="ellipsis")
    return text


def _fit(columns: Sequence[Column], room: int) -> None:
    """Narrow the widest columns that do not wrap. Rich itself takes the same from each: short ones would vanish."""
    room -= sum(min(_width(column), WRAPPED) for column in columns if not column.no_wrap)
    rigid = sorted((column for column in columns if column.no_wrap), key=_width)
    for number, column in enumerate(rigid):  # from narrow to wide: each has its share of what those before it left
        folds = column.overflow == "fold"  # an id: it continues on the next row, since people copy it
        share = max(room // (len(rigid) - number), column.min_width or 1, WRAPPED if folds else 1)
        taken = min(_width(column), share)
        if _width(column) > share:
            column.max_width = share
        if folds and _width(column) > share:
            column.min_width, column.no_wrap = min(share, WRAPPED), False
            column._cells = [_unbroken(cell, share) for cell in column._cells]
        room -= taken


def _unbroken(cell: RenderableType, width: int) -> RenderableType:
    """A cell that continues on the next row without spaces, at which a text could begin a row of its choice."""
    if isinstance(cell, Text) and cell_len(cell.plain) > width:
        cell.plain = cell.plain.replace(" ", "␣")
    return cell


def _width(column: Column) -> int:
    """Width of the widest cell, in columns of a terminal."""
    cells = [column.header, *column._cells]
    return max(cell_len(cell.plain if isinstance(cell, Text) else str(cell)) for cell in cells)


def _escaped(text: Text) -> Text:
    """The text with what is unsafe as `\\uXXXX`, in the same styles; the text itself if nothing is."""
    unsafe = [at for at, char in enumerate(text.plain) if safe(char) != char] if safe(text.plain) != text.plain else []
    if not unsafe:
        return text
    result = text.blank_copy()
    for piece in text.divide(sorted({cut for at in unsafe for cut in (at, at + 1)})):
        piece.plain = safe(piece.plain)
        result.append_text(piece)
    return result
