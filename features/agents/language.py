"""The tool `agent` in the language of plans: the form of its answer must be a JSON Schema."""

from __future__ import annotations

from functools import partial

from plansurvive.features.agents.model.as_plan import TOOL
from plansurvive.plans.definition.durable_tools import Asks, DurableTool
from plansurvive.plans.definition.language import Language
from plansurvive.plans.definition.output_schema import argument_problem, written_problems

_SCHEMA = "outputSchema"


LANGUAGE = Language(
    tools=[
        DurableTool(
            TOOL,
            Asks("AGENT", "an agent chooses its own tool calls, and each that needs an approval asks"),
            starts_workflow=True,
            schema_args=(_SCHEMA,),
            tool_args=("tools",),
            written_problems=partial(written_problems, _SCHEMA),
            problem=partial(argument_problem, _SCHEMA),
            unforeseen="it chooses its calls while it runs",
        )
    ]
)
