"""A plan from a request, and a plan revised: a look at the workspace, then the LLM, its answer validated and corrected.

What cannot be mended in time is kept: the plan waits in review with its problems, for a person to mend, or to have it
made again. Nothing the LLM writes waives an approval, sets a workspace or a limit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from plans.agents.llm_request import Snapshot, SnapshotRequest
    from plans.definition.validation import condition_problems, errors, problems
    from plans.errors import Unanswered
    from plans.execution.recovery import history
    from plans.execution.regeneration import as_it_stands, begun, fitted
    from plans.llm.answers import parse_plan_answer
    from plans.llm.json_extraction import AnswerProblem
    from plans.llm.planning_prompts import planning_prompt, planning_system, regenerate_prompt
    from plans.llm.schemas import plan_schema
    from plans.log import LogKind
    from plans.model import Plan, Problem, Step
    from plans.run import Run
    from workflows import policies, splitting
    from workflows.llm import Question, answered

MAX_STEPS = 200
"""Steps of a plan that an LLM writes: more than anyone reviews."""


class Drafted(NamedTuple):
    """What came of it: a plan, or the best there is, with its problems; the text when no plan could be read in it."""

    plan: Plan
    problems: list[Problem]
    text: str = ""


async def draft(run: Run) -> Drafted:
    """The plan for the run's request. Never raises for what the LLM did."""
    if run.options.split is not None:
        return await _split(run, run.options.split)
    tools = run.facts.tools.values()
    asked = planning_prompt(planning_system(tools), run.request, await _snapshot(run))
    question = Question("plan", asked, "plan", plan_schema(tools), "write the plan")
    reader = _Reader(run, run.plan)
    try:
        return Drafted(await answered(run, question, reader), [])
    except Unanswered as error:
        told = [Problem(code=error.code, message=error.message)]
        if reader.best is None:
            return Drafted(run.plan, told, error.text[:20_000])
        return Drafted(reader.best, [*told[: error.code != "LLM_BAD_ANSWER"], *reader.problems])


async def _split(run: Run, args: dict[str, Any]) -> Drafted:
    try:
        plan = await splitting.split(run, args)
    except Unanswered as error:
        return Drafted(run.plan, [Problem(code=error.code, message=error.message)], error.text[:20_000])
    return Drafted(plan, errors(problems(plan, run.facts.tools)))


async def redraft(run: Run, feedback: str) -> Plan:
    """The present plan, revised as the feedback asks. Raises Unanswered."""
    tools, plan, snapshot = run.facts.tools.values(), as_it_stands(run), await _snapshot(run)
    told = {name: run.steps[name].status.value for name in begun(run)}
    goal, system = run.request or plan.title, planning_system(tools)
    asked = regenerate_prompt(system, goal, snapshot, plan, feedback, told, history(run))
    question = Question("plan", asked, "plan", plan_schema(tools), "revise the plan")
    return await answered(run, question, _Reader(run, plan))


class _Reader:
    """Reads answers as plans that keep what is not the LLM's to set; remembers the best one that is not sound."""

    def __init__(self, run: Run, base: Plan) -> None:
        self._run, self._base = run, base
        self.best: Plan | None = None
        self.problems: list[Problem] = []

    def __call__(self, text: str) -> Plan | AnswerProblem:
        answer = parse_plan_answer(text, self._run.facts.tools, MAX_STEPS)
        if isinstance(answer, AnswerProblem):
            return answer
        steps, wrong = fitted(self._run, answer.plan.steps)
        if wrong:
            return AnswerProblem.of(wrong)
        plan = self._on_base(answer.plan, steps)
        found = errors(problems(plan, self._run.facts.tools))
        if not found:
            for note in answer.notes[:20]:
                self._run.note(LogKind.LLM, note, workflow.now())
            return plan
        if not condition_problems(plan) and not any(problem.code == "PLAN_DUPLICATE_ID" for problem in found):
            self.best, self.problems = plan, found
        return AnswerProblem.of([problem.text for problem in found])

    def _on_base(self, plan: Plan, steps: list[Step]) -> Plan:
        changed = {
            "steps": steps,
            "title": plan.title or self._base.title,
            "estimated_duration": plan.estimated_duration,
        }
        return self._base.model_copy(update=changed)


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
