"""Fetches facts about the workers with the activity `check_plan`, once per task queue that steps are bound to.

An edit may need tools or a queue that the plan did not use before; their facts are fetched when it arrives.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception

from plansurvive.plans.activity_io import CheckRequest, Facts
from plansurvive.plans.definition.checks.validation import errors
from plansurvive.plans.definition.scopes import outermost, queues
from plansurvive.plans.editing.apply_edits import Revised
from plansurvive.plans.errors import InvalidPlan, PlanError, Refused
from plansurvive.plans.flow.places import any_places
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.model.parts import Part
from plansurvive.plans.model.tool_spec import joined
from plansurvive.plans.run import Run, own_steps
from plansurvive.workflows import policies
from plansurvive.workflows.payloads import of_json


async def facts_about(
    run: Run, plan: Plan | None, *, all_tools: bool, first: bool = True, part: Part | None = None
) -> Facts:
    """Facts about the workers, and all problems of the plan; without a plan (not yet drafted), about the workers only.

    `first`: activities get readable ids. Later checks may run concurrently, so they get ids from the SDK.
    `part`: what a feature tells its side in the worker.
    """
    request = _request(run, plan, all_tools=all_tools)
    if part is not None:
        request.parts[part.feature] = part
    own = run.plan.queue
    facts = await _ask_queue(request, own, first)
    all_problems = list(facts.problems)
    for queue in queues([*outermost(plan), *own_steps(run).values()]) if plan else ():
        if queue != own:
            known = run.options.directories.get(queue)
            other = await _ask_queue(request.model_copy(update={"queue": queue, "directory": known}), queue, first)
            all_problems += [problem for problem in other.problems if problem not in all_problems]
            facts.tools.update(joined(facts.tools, other.tools))
            facts.workspaces[queue] = other.workspace
            if "" in other.directories:
                facts.directories[queue] = other.directories[""]
            facts = _as_strict(facts, other)
    return facts.model_copy(update={"problems": all_problems})


def _as_strict(facts: Facts, other: Facts) -> Facts:
    """The facts with strict approvals if the workers of another queue have them: the strictest of a plan decides."""
    return facts.model_copy(update={"strict_approvals": True}) if other.strict_approvals else facts


async def require_tools(run: Run) -> Facts:
    """Add all tools of the plan's own workers to the run's facts, and return theirs.

    Raises Refused CHECK_FAILED after the last retry.
    """
    try:
        return await learn_tools(run)
    except FailureError as error:  # a local activity's own failure, not wrapped in an ActivityError
        if is_cancelled_exception(error):
            raise
        raise Refused(
            f"the worker could not list its tools: {error.cause or error.message}"[:1_000], "CHECK_FAILED"
        ) from error


async def learn_tools(run: Run) -> Facts:
    """Add all tools of the plan's own workers to the run's facts, and return theirs.

    Raises the local activity's FailureError.
    """
    facts = await facts_about(run, None, all_tools=True, first=False)
    tools = joined(facts.tools, run.facts.tools)
    run.facts = run.facts.model_copy(update={"tools": tools, "all_tools": True})
    return facts


def keep_places(run: Run, revised: Revised, told: bool | None) -> None:
    """Have the run keep the places of loops, if edits bring the first one that has any: none of its items have begun.

    `told`: whether the worker that was asked about these edits does; None: none was. No patch is asked for directly
    after a local activity (docs/temporal.md, 10).
    """
    now = [*outermost(run.plan), *own_steps(run).values()]
    if run.facts.places or any_places(now):
        return
    if not any_places([*outermost(revised.plan), *revised.overrides.values()]):
        return
    if workflow.patched("places-of-edits") if told is None else told:
        run.facts = run.facts.model_copy(update={"places": True})


async def learn_queue(run: Run, queue: str) -> list[str]:
    """Add the tools and the workspace of another queue's workers to the run's facts; returns the tools' names.

    Raises Refused, InvalidPlan.
    """
    facts = await _ask_new(run, None, queue)
    tools, places = joined(facts.tools, run.facts.tools), {**run.facts.workspaces, queue: facts.workspace}
    directories = {queue: facts.directories[""]} if "" in facts.directories else {}
    update = {"tools": tools, "workspaces": places, "directories": directories | run.facts.directories}
    run.facts = _as_strict(run.facts.model_copy(update=update), facts)
    return list(facts.tools)


async def learn_for_recovery(run: Run, step: Step) -> str | None:
    """Make all tools known that may recover the step: those of the workers of its queue.

    Each queue is asked once in a run. Returns why they could not be listed; the step is then recovered with the tools
    that are known.
    """
    queue = step.queue if step.queue != run.plan.queue else None
    known = run.facts.all_tools if queue is None else queue in run.facts.queue_tools
    if known:
        return None
    try:
        if queue is None:
            await learn_tools(run)
        else:
            names = await learn_queue(run, queue)
            of_queues = {**run.facts.queue_tools, queue: names}
            run.facts = run.facts.model_copy(update={"queue_tools": of_queues})
    except (FailureError, PlanError) as error:
        if is_cancelled_exception(error):
            raise
        return f"the worker could not list its tools: {getattr(error, 'cause', None) or error}"[:1_000]
    return None


async def judge(run: Run, plan: Plan, queue: str) -> None:
    """Have a queue's workers validate the steps of an edited plan that are bound to it. Raises Refused, InvalidPlan."""
    await _ask_new(run, plan, queue)


async def _ask_new(run: Run, plan: Plan | None, queue: str) -> Facts:
    request = _request(run, plan, all_tools=True).model_copy(
        update={"queue": queue, "directory": run.options.directories.get(queue)}
    )
    try:
        facts = await _ask_bound(request, queue, False, patience=policies.NEW_QUEUE)
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        text = f"no worker serves queue '{queue}'; start one (PLANS_TASK_QUEUE={queue} plan worker), or use another"
        raise Refused(text, "UNKNOWN_QUEUE") from error
    if errors(facts.problems):
        raise InvalidPlan(errors(facts.problems))
    return facts


def _request(run: Run, plan: Plan | None, *, all_tools: bool) -> CheckRequest:
    options = run.options
    return CheckRequest(
        plan=plan, workspace=options.workspace, granted=options.granted, inputs=options.inputs, all_tools=all_tools,
        directory=options.directories.get(""),
    )  # fmt: skip


async def _ask_queue(request: CheckRequest, queue: str | None, first: bool) -> Facts:
    if queue is None or queue == workflow.info().task_queue:
        # Local, because only this worker's own tools are read: saves every plan a dispatch and seven events.
        facts: Facts = await workflow.execute_local_activity(
            "check_plan",
            _payload(request, stays=True),
            result_type=Facts,
            activity_id="check_plan" if first else None,
            summary=_summary(request),
            start_to_close_timeout=policies.CHECK.start_to_close,
            schedule_to_close_timeout=None if first else policies.UNSERVED,
            retry_policy=policies.CHECK.retry_policy,
            local_retry_threshold=policies.LOCAL_WAIT,
        )
        return facts
    return await _ask_bound(request, queue, first)


async def _ask_bound(request: CheckRequest, queue: str, first: bool, patience: timedelta | None = None) -> Facts:
    facts: Facts = await workflow.execute_activity(
        "check_plan",
        _payload(request),
        result_type=Facts,
        task_queue=queue,
        activity_id=(f"check_plan:{queue}" if request.queue else "check_plan") if first else None,
        summary=_summary(request),
        schedule_to_start_timeout=patience,
        start_to_close_timeout=policies.CHECK.start_to_close,
        retry_policy=policies.CHECK.retry_policy,
    )
    return facts


def _payload(request: CheckRequest, *, stays: bool = False) -> RawValue:
    """The request without default values, which are most of a plan. `stays`: see `of_json`."""
    return of_json(request.model_dump_json(exclude_defaults=True), stays=stays)


def _summary(request: CheckRequest) -> str:
    what = f"check {len(request.plan.steps)} steps against" if request.plan else "learn"
    return f"{what} the worker's tools"
