"""The tool `plan` in the language of plans: the steps in its arguments are a plan of their own."""

from __future__ import annotations

from plansurvive.features.children.nested import inline_problems
from plansurvive.plans.child_state import must_load
from plansurvive.plans.definition.durable_tools import Asks, DurableTool
from plansurvive.plans.definition.language import Language
from plansurvive.plans.model.opaque import PLAN

LANGUAGE = Language(
    tools=[
        DurableTool(
            PLAN,
            Asks("PLAN", "the steps of the plan that it starts may ask"),
            starts_workflow=True,
            reads_first=lambda args, state: must_load(state.child, args),
        )
    ],
    calls=[inline_problems],
)
