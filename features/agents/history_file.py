"""Serialises agent runs: `agent-history.json`, and the SUMMARY.md of a run.

`history_text` and `read_history` round-trip the file byte for byte. For a damaged file, `read_history` returns the
entries that are still valid. `entry_of_summary` reconstructs an entry from the SUMMARY.md of a run.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import Field, ValidationError

from plansurvive.features.agents.model.history import PLAN_TYPE, VERSION, Entry, History, Status
from plansurvive.plans.definition.parsing import MAX_BYTES, Unreadable, parse_json
from plansurvive.plans.model import Value
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.markdown import md

RESUMED_BY = "- Resumed by: "
_OPTIONAL = ("agent_type", "plan", "resumes", "resumed_by")


class Damage(Value):
    """What is wrong with a history file, and the entries that are still valid."""

    reason: str
    saved: list[Entry] = Field(default_factory=list)


def history_text(history: History) -> str:
    """The content of the file, formatted as `JSON.stringify(history, null, 2)` does."""
    entries = [_plain(entry) for entry in history.entries]
    data = {"version": history.version, "max_entries": history.max_entries, "entries": entries}
    return json.dumps(data, ensure_ascii=False, indent=2).encode("utf-8", "replace").decode()


def read_history(text: str | bytes) -> History | Damage:
    """Parse the content of the file; returns what is wrong if it is not a valid history."""
    if not text.strip():
        return Damage(reason="the file is empty")
    if len(text) > MAX_BYTES:
        return Damage(reason=f"the file is larger than {MAX_BYTES} bytes")
    try:
        data = parse_json(text)
    except Unreadable as error:
        return Damage(reason=error.problem.message)
    if isinstance(data, dict) and data.get("version") != VERSION:
        return Damage(reason=f"the version is {json.dumps(data.get('version'))[:40]}, not {json.dumps(VERSION)}")
    try:
        return History.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        return Damage(reason=f"{place}: {first['msg']}", saved=_good_entries(data))


def run_summary(entry: Entry, status: str, body: str = "") -> str:
    """The SUMMARY.md of an agent's run, which `entry_of_summary` can parse."""
    rows = [f"# {md(line(entry.task_description)) or entry.agent_id}", "", f"- Agent: `{line(entry.agent_id)}`"]
    rows += [f"- Type: {line(entry.agent_type)}"] if entry.agent_type else []
    rows += [f"- Plan: `{line(entry.plan)}`"] if entry.plan else []
    rows += [f"- Status: {status}", f"- Started: {entry.timestamp}", f"- Ended: {entry.completion_timestamp or '-'}"]
    rows += [f"- Resumes: `{line(entry.resumes)}`"] if entry.resumes else []
    rows += [f"{RESUMED_BY}`{line(entry.resumed_by)}`"] if entry.resumed_by else []
    return "\n".join(rows) + (f"\n\n{body.strip()}\n" if body.strip() else "\n")


def summary_with_successor(text: str, resumed_by: str) -> str:
    """The SUMMARY.md of a run that another has resumed: with a line that says so, unless it has one."""
    head, mark, body = text.partition("\n## ")
    if f"\n{RESUMED_BY}" in head:
        return text
    return f"{head.rstrip()}\n{RESUMED_BY}`{line(resumed_by)}`\n{mark}{body}"


def entry_of_summary(text: str) -> Entry | None:
    """Reconstruct the entry of a run from its SUMMARY.md; None if the id or the start time is missing.

    The summary of a plan yields an entry of type `plan` with the id `plan-<id>`.
    """
    head, _, _ = text.partition("\n## ")
    facts = {name: value.strip("`") for name, value in re.findall(r"(?m)^- ([A-Z][a-z]+(?: by)?): (.*)$", head)}
    title = re.match(r"# (.*)", head)
    plan, agent = facts.get("Plan"), facts.get("Agent")
    if not (plan or agent):
        return None
    name = re.sub(r"\\(.)", r"\1", title[1]) if title else ""
    prefix = f"Execute plan {plan}: " if plan else ""  # the title of a summary is the task alone
    try:
        return Entry(
            agent_id=agent or f"plan-{plan}",
            agent_type=facts.get("Type") if agent else PLAN_TYPE,
            task_description=name if name.startswith(prefix) else prefix + name,
            plan=plan,
            timestamp=facts.get("Started", ""),
            status=_status(facts.get("Status", ""), is_resumed="Resumed by" in facts),
            completion_timestamp=None if facts.get("Ended", "-") == "-" else facts["Ended"],
            resumes=facts.get("Resumes"),
            resumed_by=facts.get("Resumed by"),
        )
    except ValidationError:
        return None


def _status(text: str, *, is_resumed: bool) -> Status:
    known: dict[str, Status] = {
        "completed": "completed", "timeout": "timeout", "interrupted": "interrupted", "cancelled": "interrupted",
        "spawned": "spawned", "running": "spawned", "paused": "spawned", "review": "spawned", "resumed": "resumed",
    }  # fmt: skip
    found = known.get(text.strip(), "failed")
    return "resumed" if is_resumed and found in ("interrupted", "spawned") else found


def _plain(entry: Entry) -> dict[str, Any]:
    data = entry.model_dump(mode="json")
    return {name: value for name, value in data.items() if value is not None or name not in _OPTIONAL}


def _good_entries(data: Any) -> list[Entry]:
    rows = data.get("entries") if isinstance(data, dict) else None
    entries = []
    for row in rows if isinstance(rows, list) else []:
        try:
            entries.append(Entry.model_validate(row))
        except ValidationError:
            continue
    return entries
