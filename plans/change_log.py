"""The change log of a plan: one Revision per accepted change, bounded, with its diff.

`differences` compares two plans step by step, by id, as one line of text per difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from plans.model import Plan, Step, Value
from plans.model.step_fields import On, names

MAX_REVISIONS = 100
MAX_KEPT = 3
"""Number of complete earlier plans retained after the LLM replaced them."""
MAX_LINES = 60
MAX_CHARACTERS = 300
MAX_INNER, MAX_INNER_CHARACTERS = 100, 20_000
"""Of lines about steps inside blocks and loops that have begun, whose ids may be long."""
MAX_STEP_ID = 128
_LOGGED = frozenset(names(Step, On.EDIT)) - {"args"}
"""Fields of a step that are compared as a whole; arguments are compared one by one."""


class Revision(Value):
    """One change of a plan."""

    version: int = Field(description="Version after the change.")
    by: str = Field(default="", description="Author; `llm` for regeneration and recovery.")
    via: str = Field(default="", description="Where the author spoke: web, link; empty: by command or program.")
    verified: bool = Field(default=False, description="A login vouches for the name.")
    time: datetime
    reason: str = ""
    ops: list[str] = Field(default_factory=list, description="The operations, in order.")
    diff: list[str] = Field(default_factory=list, description="Differences, one line each.")
    step_id: str = Field(default="", description="The step whose arguments its approver replaced, and nothing else.")
    before: Plan | None = Field(default=None, description="The complete previous plan, if all of it was replaced.")


def logged(revisions: list[Revision], revision: Revision) -> list[Revision]:
    """The change log with `revision` appended, trimmed to MAX_REVISIONS entries and MAX_KEPT complete plans."""
    found = [*revisions, revision][-MAX_REVISIONS:]
    whole = [index for index, each in enumerate(found) if each.before is not None]
    for index in whole[:-MAX_KEPT]:
        found[index] = found[index].model_copy(update={"before": None})
    return found


def of_approver(old: Step, new: Step, digests: str, *, version: int, by: str, time: datetime, reason: str) -> Revision:
    """The entry for arguments that an approver replaced: as the edits would be that replace each of them."""
    names = [name for name in dict.fromkeys([*old.args, *new.args]) if old.args.get(name) != new.args.get(name)]
    diff = [*differences(Plan(steps=[old]), Plan(steps=[new])), digests]
    ops = [f"set {new.id} args.{name}"[:MAX_CHARACTERS] for name in names[:20]]
    return Revision(version=version, by=by, time=time, reason=reason, ops=ops, diff=diff, step_id=new.id)


def stands_since(revisions: Sequence[Revision], version: int, now: int, step_id: str) -> bool:
    """Whether every change from one version to the version `now` was an approver's, to another step."""
    since = [each for each in revisions if each.version > version]
    return len(since) == now - version and all(each.step_id not in ("", step_id) for each in since)


def differences(old: Plan, new: Plan) -> list[str]:
    """Differences between two plans, at most MAX_LINES lines plus a count of the rest."""
    lines = list(_differences(old, new))
    more = len(lines) - MAX_LINES
    return lines if more <= 0 else [*lines[:MAX_LINES], f"and {more} more"]


def _differences(old: Plan, new: Plan) -> Iterator[str]:
    before, after = {step.id: step for step in old.steps}, {step.id: step for step in new.steps}
    for name, (was, now) in _changed(_head(old), _head(new)):
        yield _line(f"~ {name}: {was} -> {now}")
    yield from (
        _line(f"- {name}: {step.description or step.tool}") for name, step in before.items() if name not in after
    )
    for name, step in after.items():
        if name not in before:
            yield _line(f"+ {name}: {step.tool} {_short(step.args)} {step.description}")
        elif before[name] != step:
            yield from step_differences(name, before[name], step)
    kept = [name for name in before if name in after]
    if kept != [name for name in after if name in before]:
        yield _line("order: " + ", ".join(after))


def step_differences(name: str, old: Step, new: Step) -> Iterator[str]:
    """One line for each field of a step that differs."""
    for field, (was, now) in _changed(_flat(old), _flat(new)):
        if field != "id" and len(name) <= MAX_STEP_ID:
            yield _line(f"~ {name}.{field}: {was} -> {now}")
        elif field != "id":  # of an instance: whoever looks for its line finds the whole id
            yield f"~ {name}." + _line(f"{field}: {was} -> {now}")


def shortened(lines: list[str]) -> list[str]:
    """At most MAX_INNER lines with MAX_INNER_CHARACTERS together, and a count of the rest."""
    kept, size = list[str](), 0
    for line in lines:
        size += len(line)
        if len(kept) == MAX_INNER or size > MAX_INNER_CHARACTERS:
            return [*kept, f"and {len(lines) - len(kept)} more"]
        kept.append(line)
    return kept


def _changed(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield name, (_short(old.get(name)), _short(new.get(name)))


def _head(plan: Plan) -> dict[str, Any]:
    return plan.model_dump(mode="json", exclude={"steps", "version", "id", "created_at"}, exclude_none=True)


def _flat(step: Step) -> dict[str, Any]:
    """A step's fields, with each argument as a field of its own."""
    fields = step.model_dump(mode="json", include=set(_LOGGED), exclude_none=True)
    return fields | {f"args.{name}": value for name, value in step.args.items()}


def _short(value: Any) -> str:
    if value is None:
        return "none"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:97] + "..."


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 3] + "..."
