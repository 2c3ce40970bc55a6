"""Has the LLM write or revise a plan: a snapshot of the workspace, an LLM request, then validation and corrections.

A draft that is still invalid after all corrections goes into review with its problems, where a person can edit or
regenerate it. Nothing the LLM writes can waive an approval or set a workspace or a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from plansurvive.features.agents.model.as_plan import plan_of_tasks
from plansurvive.features.agents.model.prompts import decomposition_end, decomposition_system, request_section
from plansurvive.features.agents.model.run import NOT_FOR_AGENTS
from plansurvive.features.agents.model.tasks import TaskList
from plansurvive.features.planning.asking import Question, answered
from plansurvive.features.planning.earlier_calls import history
from plansurvive.features.planning.prompts import planning_prompt, planning_system, regenerate_prompt
from plansurvive.features.planning.regeneration import begun, fitted
from plansurvive.plans.definition.checks.validation import calls_of, condition_problems, errors, problems
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.errors import Unanswered
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.llm.answers import Expected, PlanAnswer
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.llm.prompt_parts import Prompt, joined
from plansurvive.plans.llm.snapshot import Snapshot, SnapshotRequest
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Plan, Problem, ToolSpec, Value
from plansurvive.plans.model.opaque import PLAN
from plansurvive.plans.run import Run, as_it_stands
from plansurvive.workflows import policies


class Drafted(NamedTuple):
    """A valid plan, or the best draft with its problems; `text` is the last answer if none could be parsed."""

    plan: Plan
    problems: list[Problem]
    text: str = ""


async def draft(schedule: Schedule) -> Drafted:
    """Have the LLM write the plan for the run's request. An unusable answer becomes problems, never an exception."""
    run = schedule.run
    if run.options.split is not None:
        return await _split(schedule, run.options.split)
    tools = list(run.facts.tools.values())
    snapshot = await _snapshot(run)
    templates = _templates(run, snapshot)
    prompt = planning_prompt(planning_system(tools, about=run.request), run.request, snapshot.text, templates)
    rejected: list[Draft] = []
    question = Question("plan", prompt, Expected(kind="plan", tools=tools, about=run.request), "write the plan")
    try:
        return Drafted(await answered(schedule, question, PlanAnswer, _judge(run, run.plan, rejected)), [])
    except Unanswered as error:
        unanswered = [Problem(code=error.code, message=error.message)]
        best = next((each for each in reversed(rejected) if each.can_be_repaired), None)
        if best is None:
            return Drafted(run.plan, unanswered, error.text[:20_000])
        if error.code == "LLM_BAD_ANSWER":  # adds nothing to the draft's own problems
            return Drafted(best.plan, best.problems)
        return Drafted(best.plan, [*unanswered, *best.problems])


async def _split(schedule: Schedule, args: dict[str, Any]) -> Drafted:
    """Have the LLM split the request into tasks: one agent step each, with `args` and the task's objective."""
    run = schedule.run
    wanted = args.get("tools")
    offered = [spec for name, spec in run.facts.tools.items() if name not in NOT_FOR_AGENTS]
    tools = [spec for spec in offered if spec.name in wanted] if isinstance(wanted, list) else offered
    user = joined([request_section(run.request), decomposition_end()])
    prompt = Prompt(system=decomposition_system(tools, about=run.request), user=user)
    question = Question("plan_actions", prompt, Expected(kind="tasks"), "split the request into tasks")
    try:
        tasks = await answered(schedule, question, TaskList, lambda tasks: tasks)
    except Unanswered as error:
        return Drafted(run.plan, [Problem(code=error.code, message=error.message)], error.text[:20_000])
    plan = plan_of_tasks(tasks, run.plan, run.request, args)
    return Drafted(plan, errors(problems(plan, run.facts.tools, language=run.language)))


async def redraft(schedule: Schedule, feedback: str) -> Plan:
    """Have the LLM revise the current plan according to the feedback. Raises Unanswered."""
    run = schedule.run
    tools, plan, snapshot = list(run.facts.tools.values()), as_it_stands(run), await _snapshot(run)
    statuses = {name: run.steps[name].status.value for name in begun(run)}
    goal = run.request or plan.title
    system = planning_system(tools, about=goal)
    templates = _templates(run, snapshot)
    prompt = regenerate_prompt(system, goal, snapshot.text, plan, feedback, statuses, history(run), templates)
    question = Question("plan", prompt, Expected(kind="plan", tools=tools, about=goal), "revise the plan")
    return await answered(schedule, question, PlanAnswer, _judge(run, plan, []))


def _judge(run: Run, base: Plan, rejected: list[Draft]) -> Callable[[PlanAnswer], Plan | AnswerProblem]:
    """A function that accepts a valid plan based on `base`; invalid drafts are added to `rejected`."""

    def accept(answer: PlanAnswer) -> Plan | AnswerProblem:
        drafted = draft_of(run, base, answer)
        if isinstance(drafted, AnswerProblem):
            return drafted
        if drafted.problems:
            rejected.append(drafted)
            return AnswerProblem.of([problem.text for problem in drafted.problems])
        for remark in answer.notes[:20]:
            run.note(LogKind.LLM, remark, workflow.now())
        return drafted.plan

    return accept


def _templates(run: Run, snapshot: Snapshot) -> str:
    """The templates that a plan may use, if the worker has the tool that runs them."""
    return snapshot.templates if PLAN in run.facts.tools else ""


async def _snapshot(run: Run) -> Snapshot:
    try:
        snapshot: Snapshot = await workflow.execute_activity(
            "snapshot_workspace",
            SnapshotRequest(
                workspace=run.facts.workspace,
                directory=run.host.directory if run.host else run.facts.directories.get(""),
                plan_id=run.plan.id or "",
            ),
            result_type=Snapshot,
            task_queue=run.host.queue if run.host else None,
            summary="take a snapshot of the workspace",
            start_to_close_timeout=policies.SNAPSHOT.start_to_close,
            retry_policy=policies.SNAPSHOT.retry_policy,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        run.note(LogKind.WARNING, f"could not take a snapshot of the workspace: {error.cause}", workflow.now())
        return Snapshot(text="", files=0, complete=False)
    return snapshot


class Draft(Value):
    """The merged plan and its validation problems."""

    plan: Plan
    problems: list[Problem]

    @property
    def can_be_repaired(self) -> bool:
        """Whether people can load and edit it: conditions parse and step ids are unique."""
        has_duplicate = any(problem.code == "PLAN_DUPLICATE_ID" for problem in self.problems)
        return not has_duplicate and not condition_problems(self.plan)


def draft_of(run: Run, base: Plan, answer: PlanAnswer) -> Draft | AnswerProblem:
    """Put the answer's steps into `base`; an AnswerProblem if they change a step that has begun."""
    steps, wrong = fitted(run, answer.plan.steps)
    if wrong:
        return AnswerProblem.of(wrong)
    changed = {
        "steps": steps,
        "title": answer.plan.title or base.title,
        "estimated_duration": answer.plan.estimated_duration,
    }
    plan = base.model_copy(update=changed)
    return Draft.model_construct(
        plan=plan, problems=errors(problems(plan, _for_models(run, base), language=run.language))
    )


def _for_models(run: Run, base: Plan) -> Mapping[str, ToolSpec]:
    """The tools as a model may use them that revises a plan."""
    if not run.language.words:
        return run.facts.tools
    before: dict[str, list[Mapping[str, Any]]] = {}
    for _, step in walk(base):
        for call in calls_of(step):
            before.setdefault(call.tool, []).append(call.args)
    return {name: run.language.for_models(spec, before.get(name, [])) for name, spec in run.facts.tools.items()}
