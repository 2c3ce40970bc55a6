"""The definition of a plan: Plan, Step, their parts, and ToolSpec, the description of a tool.

Every value is frozen and serialises to the camelCase JSON of plan files; snake_case is accepted as well (DESIGN 2.3,
seed 004). The state of a run is in `plans.run`. An unknown field is an error, so a misspelt one is never ignored.
"""

from plansurvive.plans.model.control_flow import ForEach, Repeat
from plansurvive.plans.model.plan import Plan, Problem
from plansurvive.plans.model.rules import ApprovalRule, Budget, Defaults, Input, OnFailure, Retry
from plansurvive.plans.model.step import Case, Catch, Step, Undo
from plansurvive.plans.model.tool_spec import ToolSpec
from plansurvive.plans.model.values import (
    DEFAULT_PARALLEL,
    MAX_PARALLEL,
    MAX_STEPS,
    PlanId,
    Queue,
    Seconds,
    StepId,
    ToolName,
    Value,
)

__all__ = [
    "DEFAULT_PARALLEL",
    "MAX_PARALLEL",
    "MAX_STEPS",
    "ApprovalRule",
    "Budget",
    "Case",
    "Catch",
    "Defaults",
    "ForEach",
    "Input",
    "OnFailure",
    "Plan",
    "PlanId",
    "Problem",
    "Queue",
    "Repeat",
    "Retry",
    "Seconds",
    "Step",
    "StepId",
    "ToolName",
    "ToolSpec",
    "Undo",
    "Value",
]
