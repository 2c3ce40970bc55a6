"""The tool `plan` in the language of plans."""

from __future__ import annotations

from plansurvive.plans.definition.durable_tools import Asks, DurableTool
from plansurvive.plans.definition.language import Language
from plansurvive.plans.expressions.opaque import PLAN

LANGUAGE = Language(
    tools=[
        DurableTool(
            PLAN,
            Asks("PLAN", "the steps of the plan that it starts may ask"),
            starts_workflow=True,
        )
    ]
)
