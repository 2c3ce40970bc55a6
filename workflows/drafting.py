"""A plan from a request, and a plan revised: a look at the workspace, then the LLM, its answer validated and corrected.

What cannot be mended in time is kept: the plan waits in review with its problems, for a person to mend, or to have it
made again. Nothing the LLM writes waives an approval, sets a workspace or a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from plans.agents.as_plan import plan_of_tasks
from plans.agents.llm_request import Snapshot, SnapshotRequest
from plans.agents.prompts import decomposition_prompt, decomposition_system
from plans.agents.run import NOT_FOR_AGENTS
from plans.agents.tasks import TaskList
from plans.definition.validation import errors, problems
from plans.errors import Unanswered
from plans.execution.recovery import history
from plans.execution.regeneration import as_it_stands, begun
from plans.llm.answers import Expected, Parsed, PlanAnswer
from plans.llm.drafts import Draft, draft_of
from plans.llm.json_extraction import AnswerProblem
from plans.llm.planning_prompts import planning_prompt, planning_system, regenerate_prompt
from plans.llm.prompt_parts import Prompt
from plans.log import LogKind
from plans.model import Plan, Problem
from plans.run import Run
from workflows import policies
from workflows.llm import Question, answered


class Drafted(NamedTuple):
    """What came of it: a plan, or the best there is, with its problems; the text when no plan could be read in it."""

    plan: Plan
    problems: list[Problem]
    text: str = ""


async def draft(run: Run) -> Drafted:
    """The plan for the run's request. Never raises for what the LLM did."""
    if run.options.split is not None:
        return await _split(run, run.options.split)
    tools = list(run.facts.tools.values())
    asked = planning_prompt(planning_system(tools), run.request, await _snapshot(run))
    rejected: list[Draft] = []
    question = Question("plan", asked, Expected(kind="plan", tools=tools), "write the plan")
    try:
        return Drafted(await answered(run, question, _judge(run, run.plan, rejected)), [])
    except Unanswered as error:
        told = [Problem(code=error.code, message=error.message)]
        best = next((each for each in reversed(rejected) if each.can_be_repaired), None)
        if best is None:
            return Drafted(run.plan, told, error.text[:20_000])
        return Drafted(best.plan, [*told[: error.code != "LLM_BAD_ANSWER"], *best.problems])


async def _split(run: Run, args: dict[str, Any]) -> Drafted:
    """A plan with a step per task of the request; `args` are those of its steps besides the objective."""
    wanted = args.get("tools")
    offered = [spec for name, spec in run.facts.tools.items() if name not in NOT_FOR_AGENTS]
    tools = [spec for spec in offered if spec.name in wanted] if isinstance(wanted, list) else offered
    asked = Prompt(system=decomposition_system(tools), user=decomposition_prompt(run.request))
    question = Question("plan_actions", asked, Expected(kind="tasks"), "split the request into tasks")
    try:
        tasks = await answered(run, question, _tasks)
    except Unanswered as error:
        return Drafted(run.plan, [Problem(code=error.code, message=error.message)], error.text[:20_000])
    plan = plan_of_tasks(tasks, run.plan, run.request, args)
    return Drafted(plan, errors(problems(plan, run.facts.tools)))


async def redraft(run: Run, feedback: str) -> Plan:
    """The present plan, revised as the feedback asks. Raises Unanswered."""
    tools, plan, snapshot = list(run.facts.tools.values()), as_it_stands(run), await _snapshot(run)
    told = {name: run.steps[name].status.value for name in begun(run)}
    goal, system = run.request or plan.title, planning_system(tools)
    asked = regenerate_prompt(system, goal, snapshot, plan, feedback, told, history(run))
    question = Question("plan", asked, Expected(kind="plan", tools=tools), "revise the plan")
    return await answered(run, question, _judge(run, plan, []))


def _judge(run: Run, base: Plan, rejected: list[Draft]) -> Callable[[Parsed], Plan | AnswerProblem]:
    """Accepts a sound plan on `base`; every draft that is not sound is added to `rejected`."""

    def accept(answer: Parsed) -> Plan | AnswerProblem:
        if not isinstance(answer, PlanAnswer):
            return AnswerProblem(message="The answer must be a plan.")
        made = draft_of(run, base, answer)
        if isinstance(made, AnswerProblem):
            return made
        if made.problems:
            rejected.append(made)
            return AnswerProblem.of([problem.text for problem in made.problems])
        for note in answer.notes[:20]:
            run.note(LogKind.LLM, note, workflow.now())
        return made.plan

    return accept


def _tasks(answer: Parsed) -> TaskList | AnswerProblem:
    return answer if isinstance(answer, TaskList) else AnswerProblem(message="The answer must be a task list.")


async def _snapshot(run: Run) -> str:
    try:
        snapshot: Snapshot = await workflow.execute_activity(
            "snapshot_workspace",
            SnapshotRequest(workspace=run.facts.workspace),
            result_type=Snapshot,
            summary="look at the workspace",
            start_to_close_timeout=policies.SNAPSHOT.start_to_close,
            retry_policy=policies.SNAPSHOT.retry_policy,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        run.note(LogKind.WARNING, f"the workspace could not be looked at: {error.cause}", workflow.now())
        return ""
    return snapshot.text
