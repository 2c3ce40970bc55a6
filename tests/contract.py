"""What docs/contract.md promises, read from its tables: the commands, and the messages of each workflow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "contract.md"
Messages = dict[str, set[str]]
OF = {"PlanWorkflow": "plans", "AgentWorkflow": "agents"}
"""What the tables call the workflows."""


def promised_commands(page: str) -> set[str]:
    """The commands that a row of section 2.1 begins with."""
    names = [name.removeprefix("plan ") for first, *_ in rows(page, "2.1") for name in quoted(first)]
    return {name.split()[0] for name in names}


def promised_messages(page: str, workflow: str) -> Messages:
    """The names of a workflow's signals, updates and queries in the tables of section 2.2."""
    found: Messages = {}
    for kind, title in (("signal", "### Signals"), ("update", "### Updates"), ("query", "### Queries")):
        table = [row for row in rows(page, "2.2", title) if OF[workflow] in row[1].split(", ")]
        found[kind] = {name for first, *_ in table for name in quoted(first)}
    return found


def rows(page: str, section: str, title: str = "") -> Iterator[list[str]]:
    """The cells of each row of a section's table, or of the table below a title in it, without the head."""
    text = re.search(rf"^## {re.escape(section)} .*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert text, f"there is no section {section}"
    below = text[0].partition(f"{title}\n")[2].partition("\n### ")[0] if title else text[0]
    table = [row for row in below.splitlines() if row.startswith("|")]
    for row in table[2:]:
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def quoted(cell: str) -> list[str]:
    """What stands in backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)
