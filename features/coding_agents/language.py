"""The tool `coding_agent` in the language of plans: the form of its answer must be a JSON Schema."""

from __future__ import annotations

from functools import partial

from plansurvive.features.coding_agents.model import TOOL
from plansurvive.plans.definition.durable_tools import Asks, DurableTool
from plansurvive.plans.definition.language import Language
from plansurvive.plans.definition.output_schema import argument_problem, written_problems

_SCHEMA = "schema"

LANGUAGE = Language(
    tools=[
        DurableTool(
            TOOL,
            Asks("AGENT", "a coding agent asks a person for whatever it needs permission for"),
            starts_workflow=True,
            schema_args=(_SCHEMA,),
            written_problems=partial(written_problems, _SCHEMA),
            problem=partial(argument_problem, _SCHEMA),
            unforeseen="it chooses what it does while it runs",
        )
    ]
)
