"""Result tables of measurements; each row says whether it reached its bar."""

from __future__ import annotations

from pydantic import BaseModel, Field

PASS, SHORT = "PASS", "FALL SHORT"


class Row(BaseModel):
    """A row: its cells and its verdict."""

    cells: list[str]
    verdict: str = ""


class Table(BaseModel):
    """The result of a measurement."""

    title: str
    columns: list[str]
    rows: list[Row] = Field(default_factory=list)
    note: str = ""

    def add(self, *cells: str, reached: bool | None = None) -> None:
        """Add a row. `reached`: whether it reached its bar; None for a row without a bar."""
        self.rows.append(Row(cells=list(cells), verdict="" if reached is None else PASS if reached else SHORT))

    @property
    def shorts(self) -> int:
        """Number of rows that fall short."""
        return sum(row.verdict == SHORT for row in self.rows)

    def markdown(self) -> str:
        """The table, readable as text and as Markdown."""
        lines = [[*self.columns, "verdict"], *([*row.cells, row.verdict] for row in self.rows)]
        widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
        drawn = [_line(line, widths) for line in lines]
        drawn.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
        return "\n".join([f"## {self.title}", "", *([self.note, ""] if self.note else []), *drawn])


def _line(cells: list[str], widths: list[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
