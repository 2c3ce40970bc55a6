"""The change log of a plan: one Revision per accepted change, bounded, with its diff.

`differences` compares two plans step by step, by id, as one line of text per difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from plansurvive.plans.model import Plan, Step, Value
from plansurvive.plans.model.step_fields import On, names
from plansurvive.plans.plan_diff import ABSENT, field_differences, step_differences

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
    via: str = Field(default="", description="How the author sent it: web, link; empty: by command or program.")
    verified: bool = Field(default=False, description="A login or the person's own key vouches for the name.")
    signed: str = Field(default="", description="Whose own key has signed it: a person, `page:` and a page.")
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
    diff = [*differences(Plan(steps=[old]), Plan(steps=[new])), digests]
    ops = [f"set {new.id} args.{each.path}"[:MAX_CHARACTERS] for each in field_differences(old.args, new.args)][:20]
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
    found = list(step_differences({step.id: step for step in old.steps}, {step.id: step for step in new.steps}))
    yield from _field_lines("", _head(old), _head(new))
    for each in found:
        if each.old is not None and each.new is None:
            yield _line(f"- {each.name}: {each.old.description or each.old.tool}")
    for each in found:
        if each.new is not None and each.old is None:
            yield _line(f"+ {each.name}: {each.new.tool} {_short(each.new.args)} {each.new.description}")
        elif each.new is not None and each.old is not None:
            yield from step_lines(each.name, each.old, each.new)
    if any(each.is_moved for each in found):
        yield _line("order: " + ", ".join(step.id for step in new.steps))


def step_lines(name: str, old: Step, new: Step) -> Iterator[str]:
    """One line for each field of a step that differs."""
    yield from _field_lines(f"{name}.", _flat(old), _flat(new))


def shortened(lines: list[str]) -> list[str]:
    """At most MAX_INNER lines with MAX_INNER_CHARACTERS together, and a count of the rest."""
    kept, size = list[str](), 0
    for line in lines:
        size += len(line)
        if len(kept) == MAX_INNER or size > MAX_INNER_CHARACTERS:
            return [*kept, f"and {len(lines) - len(kept)} more"]
        kept.append(line)
    return kept


def _field_lines(before: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for path, was, now in field_differences(old, new):
        text = f"{path}: {_short(was)} -> {_short(now)}"
        if len(before) <= MAX_STEP_ID:
            yield _line(f"~ {before}{text}")
        else:  # of an instance: whoever looks for its line finds the whole id
            yield f"~ {before}" + _line(text)


def _head(plan: Plan) -> dict[str, Any]:
    return plan.model_dump(mode="json", exclude={"steps", "version", "id", "created_at"}, exclude_none=True)


def _flat(step: Step) -> dict[str, Any]:
    """A step's fields, with each argument as a field of its own."""
    fields = step.model_dump(mode="json", include=set(_LOGGED - {"id"}), exclude_none=True)
    return fields | {f"args.{name}": value for name, value in step.args.items()}


def _short(value: Any) -> str:
    if value is ABSENT:
        return "none"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:97] + "..."


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 3] + "..."
