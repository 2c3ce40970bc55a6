"""The tool `coding_agent` in the language of plans: the form of its answer must be a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.features.coding_agents.model import TOOL
from plansurvive.plans.definition.durable_tools import Asks, DurableTool
from plansurvive.plans.definition.language import Language
from plansurvive.plans.definition.output_schema import schema_problem
from plansurvive.plans.expressions.references import find


def _written_problems(args: Mapping[str, Any]) -> list[tuple[str, str]]:
    schema = args.get("schema")
    why = schema_problem(schema) if isinstance(schema, dict) and not find(schema) else ""
    return [("args.schema", why)] if why else []


def _problem(args: Mapping[str, Any]) -> str:
    why = schema_problem(args.get("schema") or {})
    return f"args.schema: {why}" if why else ""


LANGUAGE = Language(
    tools=[
        DurableTool(
            TOOL,
            Asks("AGENT", "a coding agent asks a person for whatever it needs permission for"),
            starts_workflow=True,
            schema_args=("schema",),
            written_problems=_written_problems,
            problem=_problem,
            unforeseen="it chooses what it does while it runs",
        )
    ]
)
