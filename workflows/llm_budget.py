"""What LLM requests cost: whether a plan's own one fits its budget, which its agents share, and what was spent."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.plans import budget
from plansurvive.plans.agents.llm_request import AgentQuestion
from plansurvive.plans.agents.run import AgentRun
from plansurvive.plans.budget import Budget, Usage
from plansurvive.plans.errors import Unanswered
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.run import Run
from plansurvive.workflows.children.parent import permitted


async def require_budget(run: Run) -> None:
    """Raise Unanswered when the LLM budget allows no further request; log once when it is nearly used up.

    Near a limit, waits for requests of agents that are under way. A child plan then asks its parent.
    """
    judgement = _judgement(run)
    if judgement.verdict == "wait":
        await workflow.wait_condition(lambda: _judgement(run).verdict != "wait")
        judgement = _judgement(run)
    if judgement.verdict == "warn" and not any(entry.kind is LogKind.BUDGET for entry in run.log):
        run.note(LogKind.BUDGET, judgement.reason, workflow.now())
    if judgement.verdict in ("ask", "stop"):
        run.note(LogKind.BUDGET, judgement.reason, workflow.now(), code=budget.OVERRUN_CODE)
        raise Unanswered(judgement.refusal(run.plan.id or ""), budget.OVERRUN_CODE)
    await permitted(run)


def _judgement(run: Run) -> budget.Judgement:
    """Whether the plan may send a request. The default budget is for the plan's own requests only."""
    if run.plan.budget is None:
        return budget.decide(Budget(), Usage(calls=run.llm_calls), run.llm_seconds)
    return budget.judge(run.plan.budget, run.ledger.position(run.llm_calls, run.llm_seconds))


def count(run: Run, usage: Usage, model: str, seconds: float, step_id: str = "") -> None:
    """Add a request that has ended to what the run has spent; `model`: empty if it gave no answer."""
    run.llm_seconds += seconds
    if usage.calls:
        run.ledger = run.ledger.plus(usage, model=model, step_id=step_id, seconds=seconds)


def characters(agent: AgentRun, question: AgentQuestion) -> int:
    """How long the prompt may become: the conversation, what is new, and the descriptions of the tools."""
    tools = (agent.run.facts.tools[name] for name in question.tools)
    new = len(question.model_dump_json(exclude={"conversation"}))
    return (question.conversation.bytes if question.conversation else 0) + new + sum(map(_size, tools))


def _size(tool: ToolSpec) -> int:
    return len(tool.description) + len(str(tool.args_schema))


def failure_of(error: ActivityError) -> tuple[Unanswered, Usage]:
    """A failed request as Unanswered, and the usage it reported all the same."""
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return Unanswered(f"the LLM request failed: {cause or error}"[:1_000], "LLM_UNAVAILABLE"), Usage()
    detail: dict[str, Any] = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
    try:
        usage = Usage.model_validate(detail.get("usage") or {})
    except ValidationError:
        usage = Usage()
    return Unanswered(cause.message, cause.type or "LLM_UNAVAILABLE", text=str(detail.get("said") or "")), usage
