"""What docs/contract.md promises, read from its tables: the commands, and the messages of each workflow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "contract.md"
Messages = dict[str, set[str]]


def promised_commands(page: str) -> set[str]:
    """The commands that a row of section 2.1 begins with."""
    names = [name.removeprefix("plan ") for first, *_ in rows(page, "2.1") for name in quoted(first)]
    return {name.split()[0] for name in names}


def promised_messages(page: str, workflow: str) -> Messages:
    """The names of a workflow's signals, updates and queries in the rows of section 2.2."""
    found: Messages = {"signal": set(), "update": set(), "query": set()}
    for kind, workflows, names, *_ in rows(page, "2.2"):
        if workflow in quoted(workflows):
            found[kind] |= set(quoted(names))
    return found


def rows(page: str, section: str) -> Iterator[list[str]]:
    """The cells of each row of a section's table, without its head."""
    text = re.search(rf"^## {re.escape(section)} .*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert text, f"there is no section {section}"
    table = [row for row in text[0].splitlines() if row.startswith("|")]
    for row in table[2:]:
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def quoted(cell: str) -> list[str]:
    """What stands in backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)
