"""What docs/reference/messages.md promises: the signals, updates and queries of each workflow."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "messages.md"
Messages = dict[str, set[str]]
OF = {"PlanWorkflow": "plans", "AgentWorkflow": "agents"}
"""What the tables call the workflows."""


def promised_messages(page: str, workflow: str) -> Messages:
    """The names of a workflow's signals, updates and queries in the tables."""
    found: Messages = {}
    for kind, title in (("signal", "Signals"), ("update", "Updates"), ("query", "Queries")):
        section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|", section, re.MULTILINE)
        found[kind] = {name for name, of in rows if OF[workflow] in of.split(", ")}
    return found
