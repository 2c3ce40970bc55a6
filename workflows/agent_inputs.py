"""What starts an AgentWorkflow, read without trust: any shape of input becomes a request or a clean failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from pydantic import Field, ValidationError

    from plans.agents.order import AgentOrder
    from plans.agents.run import AgentRun
    from plans.errors import InvalidPlan
    from plans.model import Problem, Value
    from plans.run import Options


class AgentRequest(Value):
    """An order and options; or, when it continues as new or resumes another, the run so far."""

    order: AgentOrder | None = None
    options: Options = Field(default_factory=Options)
    agent: AgentRun | None = None


def read_agent_request(arguments: Sequence[Any]) -> AgentRequest:
    """The workflow's one argument. Raises InvalidPlan."""
    if len(arguments) != 1 or not isinstance(arguments[0], dict) or not arguments[0].keys() & {"order", "agent"}:
        text = 'start the workflow with one JSON object: {"order": {"request": "..."}, "options": {}}'
        raise InvalidPlan([Problem(code="AGENT_SCHEMA", message=text)])
    try:
        return AgentRequest.model_validate(arguments[0])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidPlan([Problem(code="AGENT_SCHEMA", field=place, message=first["msg"])]) from error
