"""Reads a foreign workflow document, finds out what it is, and imports it."""

from __future__ import annotations

from typing import Any, Literal

import yaml

from plansurvive.apps.importers.common.report import Imported, Place, Report
from plansurvive.apps.importers.github_actions import workflow as github
from plansurvive.apps.importers.serverless import workflow as serverless
from plansurvive.client.plan_file import PlanFile
from plansurvive.plans.errors import PlanError

Kind = Literal["github", "serverless"]
MAX_LINES = 50_000
"""Most places of a document whose lines are known."""


class ImportRefused(PlanError):
    """A document that cannot be imported at all. Codes: UNKNOWN_FORMAT, NOTHING_CARRIED."""

    code = "NOTHING_CARRIED"


def imported(file: PlanFile, kind: Kind | None = None) -> Imported:
    """The plan made of a document. `kind` None: found out. Raises ImportRefused."""
    chosen = kind or kind_of(file.data)
    if chosen is None:
        text = f"{file.name} is neither a GitHub Actions workflow (jobs) nor a Serverless Workflow (document, do)"
        raise ImportRefused(f"{text}; name the format with --from", "UNKNOWN_FORMAT")
    if not isinstance(file.data, dict):
        raise ImportRefused(f"{file.name} is not an object", "UNKNOWN_FORMAT")
    report = Report(lines_of(file.text))
    make = github.plan_of if chosen == "github" else serverless.plan_of
    plan = make(file.data, file.title, report)
    if not plan.get("steps"):
        raise ImportRefused(f"nothing in {file.name} can be carried over")
    return Imported(chosen, plan, report)


def kind_of(data: Any) -> Kind | None:
    """What a document is, by the fields that its format requires."""
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("jobs"), dict):
        return "github"
    return "serverless" if isinstance(data.get("do"), list) and "document" in data else None


def lines_of(text: str) -> dict[Place, int]:
    """The line of every key and element of a document; empty where its text is no YAML."""
    found: dict[Place, int] = {}
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return found
    waiting: list[tuple[Place, Any]] = [((), root)]
    while waiting and (left := MAX_LINES - len(found)) > 0:
        place, node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value[:left]:
                inner = (*place, str(key.value)) if isinstance(key, yaml.ScalarNode) else place
                found[inner] = key.start_mark.line + 1
                waiting.append((inner, value))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value[:left]):
                found[*place, number] = value.start_mark.line + 1
                waiting.append(((*place, number), value))
    return found
