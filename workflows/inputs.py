"""What starts a PlanWorkflow, read without trust: any shape of input becomes a request or a clean failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from pydantic import Field, ValidationError

    from plans.definition.validation import bounded
    from plans.errors import InvalidPlan, PlanError
    from plans.model import Problem, Value
    from plans.run import Options, Run
    from plans.run_json import run_of, without_collecting


class PlanRequest(Value):
    """What the workflow is started with: a plan and options; or a request; or, when it continues as new, the Run."""

    plan: Any = Field(default=None, description="The plan as its author wrote it; validated by the workflow.")
    request: str | None = Field(
        default=None,
        min_length=1,
        max_length=20_000,
        description="What the LLM is to write the plan for; `plan` then holds the fields it is not to set, no steps.",
    )
    options: Options = Field(default_factory=Options)
    run: Run | None = None


def read_request(arguments: Sequence[Any]) -> PlanRequest:
    """The workflow's one argument. Raises InvalidPlan when it is missing, doubled or of another shape."""
    if len(arguments) != 1 or not isinstance(arguments[0], dict):
        text = 'start the workflow with one JSON object: {"plan": {"steps": [...]}, "options": {}}'
        raise InvalidPlan([Problem(code="PLAN_SCHEMA", message=text)])
    try:
        with without_collecting():
            carried = arguments[0].get("run")
            if isinstance(carried, str):  # how a big Run is carried on: read at once, it takes a quarter of the time
                return PlanRequest(run=run_of(carried))
            return PlanRequest.model_validate(arguments[0])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidPlan([Problem(code="PLAN_SCHEMA", field=place, message=first["msg"])]) from error


def refusal(error: PlanError, run: Run | None = None) -> ApplicationError:
    """The failure of an update: the error's code, and what a client needs to show it."""
    problems = error.problems if isinstance(error, InvalidPlan) else []
    told = [problem.model_dump(mode="json", exclude_none=True) for problem in bounded(problems)]
    detail = {"version": run.plan.version if run else None, "problems": told}
    return ApplicationError(error.message[:8_000], detail, type=error.code, non_retryable=True)


def invalid(problems: Sequence[Problem]) -> ApplicationError:
    """The failure of a workflow whose plan cannot run; its detail is the list of problems."""
    problems = bounded(list(problems))
    detail = [problem.model_dump(mode="json", exclude_none=True) for problem in problems]
    return ApplicationError(InvalidPlan(problems).message[:8_000], detail, type="INVALID_PLAN", non_retryable=True)


def step_of(arguments: Sequence[Any]) -> str | None:
    """The step a message speaks of, if it can be told."""
    found = arguments[0].get("stepId") if len(arguments) == 1 and isinstance(arguments[0], dict) else None
    return found if isinstance(found, str) else None
