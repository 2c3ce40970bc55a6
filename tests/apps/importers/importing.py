"""Imports documents for tests: every plan that comes out is read back from its YAML, and is sound."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

from plansurvive.apps.importers.commands import imported
from plansurvive.apps.importers.common.plan_text import data_of, text_of
from plansurvive.apps.importers.common.report import Imported
from plansurvive.client.local_tools import known_tools
from plansurvive.client.plan_file import PlanFile, check
from plansurvive.plans.definition.checks.validation import errors
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.plan_files.yaml_reader import parse_yaml
from plansurvive.runtime.settings import Settings


@cache
def tools() -> dict[str, ToolSpec]:
    """The tools of this machine."""
    return known_tools(Settings.read({"HOME": str(Path.home())}))


def plan_of(text: str, name: str = "ci.yml") -> tuple[dict[str, Any], Imported]:
    """The plan made of a document, and all about it."""
    text = dedent(text)
    result = imported(PlanFile(name, text, parse_yaml(text)))
    plan = data_of(result)
    assert parse_yaml(text_of(result, name)) == plan
    problems = errors(check(plan, tools())[1])
    assert problems == [], problems
    return plan, result


def losses(result: Imported) -> list[str]:
    """Where something was not carried over, and what."""
    return [f"{entry.where}: {entry.what}" for entry in result.report.entries if entry.kind == "loss"]


def steps_of(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The steps of a plan or a block by id."""
    return {step["id"]: step for step in plan["steps"]}
