"""What docs/contract.md promises, read from its tables: the commands, and the messages of workflows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "contract.md"
KINDS = ("signal", "update", "query")
Messages = dict[str, set[str]]


def promised_commands(page: str) -> set[str]:
    """The commands that a row of section 2.1 begins with."""
    rows = [row for head, *rest in tables(page, "2.1") if head[0] == "command" for row in rest]
    names = [name.removeprefix("plan ") for row in rows for name in quoted(row[0])]
    return {name.split()[0] for name in names}


def promised_messages(page: str) -> Messages:
    """The names of signals, updates and queries in the rows of section 2.2."""
    found: Messages = {kind: set() for kind in KINDS}
    for head, *rest in tables(page, "2.2"):
        if head[0] in KINDS:
            found[head[0]] |= {name for row in rest for name in quoted(row[0])}
    return found


def tables(page: str, section: str) -> Iterator[list[list[str]]]:
    """The tables of a section: the cells of each row, those of the head first."""
    text = re.search(rf"^## {re.escape(section)} .*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert text, f"there is no section {section}"
    for table in re.findall(r"(?:^\|.*\n?)+", text[0], re.MULTILINE):
        head, _, *rest = table.splitlines()
        yield [cells(row) for row in (head, *rest)]


def cells(row: str) -> list[str]:
    """The cells of a row; a bar within one is escaped."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def quoted(cell: str) -> list[str]:
    """What stands in backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)
