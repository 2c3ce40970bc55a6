"""Templates as text and as JSON: the list, one with its inputs and versions, and differences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from plansurvive.client.cli.terminal.output import compact
from plansurvive.client.differences.texts import Side
from plansurvive.client.plan_file import load
from plansurvive.features.templates.known import Known
from plansurvive.features.templates.listing import Listed
from plansurvive.features.templates.names import NAME
from plansurvive.features.templates.store import Version
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Input
from plansurvive.plans.model.template import SHORT, Template
from plansurvive.plans.text.safe_text import line, safe

MAX_VERSIONS_SHOWN = 20


def table(found: Sequence[Listed]) -> Table:
    """The list of templates."""
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("TEMPLATE", "WHERE", "VERSIONS", "INPUTS"):
        rows.add_column(name, no_wrap=True)
    rows.add_column("DESCRIPTION", no_wrap=True, overflow="ellipsis")
    for each in found:
        label = f"{each.name}@{each.hash[:SHORT]}" if each.hash else each.name
        about = Text(line(each.problem), style="red") if each.problem else Text(line(each.description))
        inputs = Text(line(", ".join(each.inputs)[:60]))
        rows.add_row(Text(label), each.where, str(each.versions or ""), inputs, about)
    return rows


def shown(template: Template, versions: Sequence[Version], waives: Sequence[str]) -> str:
    """One template: what it is for, its inputs, its versions, which approvals it waives, its content."""
    rows = [line(template.label) + (f" · {line(template.description)}" if template.description else "")]
    rows += [line(template.path), ""]
    rows += ["Inputs", *inputs_rows(template.inputs), ""] if template.inputs else ["It has no inputs.", ""]
    rows += ["Versions, newest first"]
    rows += [f"  {each.hash[:SHORT]}  {line(each.saved)}" for each in versions[:MAX_VERSIONS_SHOWN]]
    rows += [f"  and {len(versions) - MAX_VERSIONS_SHOWN} more"] if len(versions) > MAX_VERSIONS_SHOWN else []
    rows += ["", f"Steps whose approval it waives: {line(', '.join(waives))}"] if waives else []
    return "\n".join([*rows, "", safe(template.text).rstrip("\n")])


def inputs_rows(inputs: dict[str, Input]) -> list[str]:
    """One row per input: name, type, default or required, what it is for."""
    return [f"  {line(name)} ({_kind(each)})" + (f"  {line(each.description)}" if each.description else "")
            for name, each in inputs.items()]  # fmt: skip


def as_json(template: Template, versions: Sequence[Version], waives: Sequence[str]) -> dict[str, Any]:
    """One template for programs."""
    inputs = {name: each.model_dump(mode="json", exclude_none=True) for name, each in template.inputs.items()}
    return {
        **template.model_dump(mode="json", include={"name", "hash", "where", "path", "description", "text"}),
        "versions": [each.model_dump(mode="json") for each in versions],
        "inputs": inputs,
        "waives": list(waives),
        "plan": template.data,
    }


def sides(known: Known, name: str, other: str | None) -> tuple[Side, Side]:
    """What is compared, the older first if it is two versions of one template. Raises PlanError."""
    first = known.find(name)
    if other is None:
        versions = [each.hash for each in known.versions(first)]
        before = versions[versions.index(first.hash) + 1 :] if first.hash in versions else []
        if not before:
            raise PlanError(f"{first.label} is the oldest version; name what to compare it with", "BAD_USAGE")
        store = known.store(user=first.where == "user")
        return _side(store.read(first.name, before[0])), _side(first)
    if re.fullmatch(rf"{NAME}(@.*)?", other):
        return _side(first), _side(known.find(other))
    return _side(first), Side(other, load(other).text)


def _side(template: Template) -> Side:
    return Side(template.label, template.text)


def _kind(declared: Input) -> str:
    return f"{declared.type}, " + ("required" if declared.default is None else f"default {compact(declared.default)}")
