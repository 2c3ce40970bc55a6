"""The tool `agent` in the language of plans: the form of its answer must be a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.features.agents.model.as_plan import TOOL
from plansurvive.plans.definition.durable_tools import Asks, DurableTool
from plansurvive.plans.definition.language import Language
from plansurvive.plans.definition.output_schema import schema_problem
from plansurvive.plans.expressions.references import find

_SCHEMA = "outputSchema"


def _written_problems(args: Mapping[str, Any]) -> list[tuple[str, str]]:
    schema = args.get(_SCHEMA)
    why = schema_problem(schema) if isinstance(schema, dict) and not find(schema) else ""
    return [(f"args.{_SCHEMA}", why)] if why else []


def _problem(args: Mapping[str, Any]) -> str:
    why = schema_problem(args.get(_SCHEMA) or {})
    return f"args.{_SCHEMA}: {why}" if why else ""


LANGUAGE = Language(
    tools=[
        DurableTool(
            TOOL,
            Asks("AGENT", "an agent chooses its own tool calls, and each that needs an approval asks"),
            starts_workflow=True,
            schema_args=(_SCHEMA,),
            written_problems=_written_problems,
            problem=_problem,
            unforeseen="it chooses its calls while it runs",
        )
    ]
)
