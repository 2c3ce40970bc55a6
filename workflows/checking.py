"""What a workflow learns about its workers: the activity `check_plan`, once per task queue that steps are bound to."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from plans.calls import CheckRequest, Facts
    from plans.model import Plan
    from plans.run import Run
    from workflows import policies


async def facts_about(run: Run, plan: Plan | None, *, all_tools: bool, first: bool = True) -> Facts:
    """The facts about a plan with all its problems; about the workers alone when there is no plan yet.

    `first`: the activities get ids people know them by; later ones may run beside each other, and get numbers.
    """
    request = CheckRequest(plan=plan, workspace=run.options.workspace, inputs=run.options.inputs, all_tools=all_tools)
    own = run.plan.queue
    facts = await _ask_queue(request, own, first)
    found = list(facts.problems)
    for queue in dict.fromkeys(step.queue for step in (plan.steps if plan else []) if step.queue):
        if queue != own:
            other = await _ask_queue(request.model_copy(update={"queue": queue}), queue, first)
            found += [problem for problem in other.problems if problem not in found]
            facts.tools.update(other.tools)
            facts.workspaces[queue] = other.workspace
    return facts.model_copy(update={"problems": found})


async def _ask_queue(request: CheckRequest, queue: str | None, first: bool) -> Facts:
    if queue is None or queue == workflow.info().task_queue:
        # Local, as nothing but this worker's own tools is read: it saves every plan a dispatch and seven events.
        facts: Facts = await workflow.execute_local_activity(
            "check_plan",
            request,
            result_type=Facts,
            activity_id="check_plan" if first else None,
            summary=_summary(request),
            start_to_close_timeout=policies.CHECK.start_to_close,
            retry_policy=policies.CHECK.retry_policy,
        )
        return facts
    return await _ask_bound(request, queue, first)


async def _ask_bound(request: CheckRequest, queue: str, first: bool) -> Facts:
    facts: Facts = await workflow.execute_activity(
        "check_plan",
        request,
        result_type=Facts,
        task_queue=queue,
        activity_id=(f"check_plan:{queue}" if request.queue else "check_plan") if first else None,
        summary=_summary(request),
        start_to_close_timeout=policies.CHECK.start_to_close,
        retry_policy=policies.CHECK.retry_policy,
    )
    return facts


def _summary(request: CheckRequest) -> str:
    what = f"check {len(request.plan.steps)} steps against" if request.plan else "learn"
    return f"{what} the worker's tools"
