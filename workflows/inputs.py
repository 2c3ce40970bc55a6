"""Start arguments of the workflows, parsed without trust: any shape becomes a request or an InvalidPlan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from plansurvive.plans.definition.checks.validation import bounded
from plansurvive.plans.errors import InvalidPlan, PlanError, Undecodable
from plansurvive.plans.in_views import NO_VIEWS, ViewSet
from plansurvive.plans.model import PlanId, Problem, Value
from plansurvive.plans.receipts import Receipts
from plansurvive.plans.run import Options, Run, gc_disabled, run_of
from plansurvive.plans.run.feature import Rules, RuleSet
from plansurvive.plans.signature import Signature
from plansurvive.plans.text.lists import number_of
from plansurvive.workflows import run_check

REFUSED = "its worker refused it"
"""Why a plan or an agent ended that never began."""
PLAN_PREFIX = "plan-"
"""What the workflow id of a plan begins with; the rest is the plan's id."""
_ID: TypeAdapter[str] = TypeAdapter(PlanId)


class PlanRequest(Value):
    """Start argument of PlanWorkflow: a plan or a request for the LLM, with options; continued or resumed, the Run."""

    plan: Any = Field(default=None, description="The plan as its author wrote it; validated by the workflow.")
    request: str | None = Field(
        default=None,
        min_length=1,
        max_length=20_000,
        description="What the LLM should write a plan for. `plan` then holds fields it must not set, and no steps.",
    )
    options: Options = Field(default_factory=Options, description="How to run the plan.")
    run: Run | None = Field(default=None, description="The state carried over by continue-as-new or resume.")
    signature: Signature | None = Field(default=None, description="Of all this, by the key of the worker.")


def undecodable(arguments: Sequence[Any], mark: str) -> Undecodable | None:
    """Why these arguments are refused, if one of them could not be decoded when they first arrived.

    What storage holds may change, and a replay must decide as the first time: a refusal for content that was missing is
    recorded in history under `mark`, unique in the run. Raises RuntimeError, which fails the workflow task until the
    content is back, if it was there the first time and is missing now.
    """
    found = next((each for each in arguments if isinstance(each, Undecodable)), None)
    if found is not None and not found.lost:
        return found
    if found is None and not workflow.unsafe.is_replaying():
        return None
    if workflow.patched(mark):
        return found or Undecodable("the content of the message was missing when it arrived", lost=True)
    require_stored(arguments)
    return None


def require_stored(arguments: Sequence[Any]) -> None:
    """Raises RuntimeError, which fails the workflow task, if content that was there when it arrived is missing."""
    if any(isinstance(each, Undecodable) for each in arguments):
        raise RuntimeError("a large value that this plan has used is no longer in the storage; restore it")


def _require_decodable(arguments: Sequence[Any]) -> None:
    """Raises InvalidPlan for a start argument that cannot be decoded; RuntimeError if an earlier run stored it."""
    if is_carried():
        require_stored(arguments)
    refused = undecodable(arguments, "undecodable-start")
    if refused is not None:
        raise InvalidPlan([Problem(code=refused.code, message=refused.message)])


def read_request(arguments: Sequence[Any], rules: Sequence[Rules] = (), views: ViewSet = NO_VIEWS) -> PlanRequest:
    """The argument of PlanWorkflow. Raises InvalidPlan unless there is exactly one, of the right shape."""
    sent = only_object(arguments, "PLAN_SCHEMA", '{"plan": {"steps": [...]}, "options": {}}')
    with schema_errors("PLAN_SCHEMA"), gc_disabled():
        carried = sent.get("run")
        # A big Run is carried as a JSON string, which parses four times faster.
        text = carried if isinstance(carried, str) else None
        request = PlanRequest.model_validate(sent) if text is None else PlanRequest(run=run_of(text))
    if request.run is not None:
        request.run.views = views
    if request.run is not None and not is_carried():
        require_sound(run_check.problem_of(request.run, workflow.now(), RuleSet(rules)))
    if request.run is not None:
        request.run.receipts = Receipts()  # those it came with are of the run before
    return request


def plan_of_workflow() -> str:
    """The id of the plan that this workflow runs: its own id without PLAN_PREFIX. Raises InvalidPlan (BAD_PLAN_ID).

    Whoever starts a workflow chooses its id, and file names, records and pages go by it.
    """
    return own_id(PLAN_PREFIX, PLAN_PREFIX)


def own_id(begins: str, without: str) -> str:
    """The workflow's id less `without`. Raises InvalidPlan (BAD_PLAN_ID) unless it begins so and is one."""
    name = workflow.info().workflow_id
    try:
        if not name.startswith(begins):
            raise ValueError
        return _ID.validate_python(name.removeprefix(without))
    except ValueError:  # pydantic's ValidationError is one
        text = f"{name[:100]!r} is not '{begins}' and letters, digits, '_', '-', '.' or ':', 200 at most"
        problem = Problem(code="BAD_PLAN_ID", message=f"the workflow id {text}; start it under such an id")
        raise InvalidPlan([problem]) from None


def require_own_id(given: str | None, own: str) -> None:
    """Raises InvalidPlan (BAD_PLAN_ID) if what was sent has an id, and that is not the one the workflow's id gives."""
    if given not in (None, own):
        name = workflow.info().workflow_id
        text = f"it has the id '{given}', but the workflow '{name}' is of '{own}'; leave the id out, or use this one"
        raise InvalidPlan([Problem(code="BAD_PLAN_ID", field="id", message=text)])


def is_carried() -> bool:
    """Whether continue-as-new wrote the argument.

    A cron schedule and a retry policy of the workflow repeat the first argument, which anybody may have written, in
    a run that continues another one as well.
    """
    info = workflow.info()
    return bool(info.continued_run_id) and not info.cron_schedule and info.attempt == 1


def require_sound(problem: str | None) -> None:
    """Raises InvalidPlan (RUN_INVALID) with the problem of a state that was handed in, if there is one."""
    if problem is not None:
        raise InvalidPlan([Problem(code="RUN_INVALID", message=problem)])


def only_object(arguments: Sequence[Any], code: str, example: str, one_of: Sequence[str] = ()) -> dict[str, Any]:
    """The one JSON object that the workflow was started with; it has one of these fields. Raises InvalidPlan."""
    _require_decodable(arguments)
    argument = arguments[0] if len(arguments) == 1 else None
    if isinstance(argument, dict) and (not one_of or argument.keys() & set(one_of)):
        return argument
    raise InvalidPlan([Problem(code=code, message=f"start the workflow with one JSON object: {example}")])


@contextmanager
def schema_errors(code: str) -> Iterator[None]:
    """Turn pydantic's ValidationError into InvalidPlan, with the first problem and its path."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))[:200]
        raise InvalidPlan([Problem(code=code, field=place, message=first["msg"][:1_000])]) from None


def step_of(arguments: Sequence[Any]) -> str | None:
    """The step id in a message's raw arguments, which may be malformed; None if there is none."""
    step_id = arguments[0].get("stepId") if len(arguments) == 1 and isinstance(arguments[0], dict) else None
    return step_id if isinstance(step_id, str) else None


def refusal(error: PlanError, run: Run | None = None) -> ApplicationError:
    """The failure of an update: the error's code as type; the plan's version and the problems as details."""
    problems = error.problems if isinstance(error, InvalidPlan) else []
    listed = [problem.model_dump(mode="json", exclude_none=True) for problem in bounded(problems)]
    detail = {"version": run.plan.version if run else None, "problems": listed}
    return ApplicationError(error.message[:8_000], detail, type=error.code, non_retryable=True)


@contextmanager
def refusing(run: Run) -> Iterator[None]:
    """Fails an update, as `refusal` says, with a PlanError that is raised inside."""
    try:
        yield
    except PlanError as error:
        raise refusal(error, run) from error


def why_refused(problems: Sequence[Problem]) -> str:
    """REFUSED, with the first problem in full (its code, its place, how to fix it), and how many there are besides."""
    if not problems:
        return REFUSED
    more = len(problems) - 1
    rest = f"; and {number_of(more, 'more problem')}" if more else ""
    return f"{REFUSED}: {problems[0].text}{rest}"


def invalid(problems: Sequence[Problem]) -> ApplicationError:
    """The failure of a workflow whose plan cannot run, with the list of problems as its details."""
    problems = bounded(list(problems))
    detail = [problem.model_dump(mode="json", exclude_none=True) for problem in problems]
    return ApplicationError(InvalidPlan(problems).message[:8_000], detail, type="INVALID_PLAN", non_retryable=True)
