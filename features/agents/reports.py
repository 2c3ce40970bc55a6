"""Reports an agent's run: to the agent history, to the parent plan, and to SUMMARY.md.

A failing report becomes a warning in the agent's log; it never fails the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from plansurvive.features.agents.history_file import run_summary
from plansurvive.features.agents.model.history import DEFAULT_TYPE, Entry, written
from plansurvive.features.agents.model.reports import report as reports
from plansurvive.features.agents.model.run import AgentRun, tasks_text
from plansurvive.features.agents.progress import progress_of
from plansurvive.plans.activity_io import AgentEvent, PastCall, SummaryFile
from plansurvive.plans.errors import Refused, Unanswered
from plansurvive.plans.execution.messages import BudgetAnswer
from plansurvive.plans.execution.resume import base_id
from plansurvive.plans.log import LogKind
from plansurvive.plans.text.safe_text import safe
from plansurvive.plans.usage import OVERRUN_CODE, estimate
from plansurvive.workflows import policies

ASKS = 20
"""Calls awaiting approval that the plan is told of."""
INTERRUPTED = "INTERRUPTED"
"""Code of a request that was not sent, because the agent was interrupted while it waited."""
Kind = Literal["spawned", "completed", "failed", "timeout", "interrupted", "resumed"]
_KINDS: dict[str, Kind] = {
    "completed": "completed", "timeout": "timeout", "interrupted": "interrupted", "cancelled": "interrupted",
}  # fmt: skip


async def begun(agent: AgentRun) -> None:
    """Record in the agent history that the run was spawned or resumed."""
    resumes = agent.run.resumes
    await _track(agent, "resumed" if resumes else "spawned", resumes)


async def ended(agent: AgentRun) -> None:
    """Record the end of the run in the agent history and write SUMMARY.md."""
    await _track(agent, _KINDS.get(agent.end or "", "failed"))
    run = agent.run
    if not run.facts.keeps_summaries:
        return
    entry = Entry(
        agent_id=run.plan.id or "",
        agent_type=DEFAULT_TYPE,
        task_description=_what(agent),
        plan=base_id(agent.order.plan_id) or None,
        timestamp=written(run.started or workflow.now()),
        status="completed",
        completion_timestamp=written(run.ended or workflow.now()),
        resumes=run.resumes or None,
    )
    body = f"## Result\n\n{safe(tasks_text(agent))}"
    file = SummaryFile(
        plan_id=run.plan.id or "", markdown=run_summary(entry, _KINDS.get(agent.end or "", "failed"), body)
    )
    await _do(agent, "write_summary", file, "write SUMMARY.md")


DECISIONS = (LogKind.APPROVED, LogKind.DENIED, LogKind.EXPIRED, LogKind.VOID)
"""Entries of the log about what people decided, which the plan has in its own."""
DECISION_CHARACTERS = 200
"""Of a decision in the plan's log."""


class Reporter:
    """Reports to the parent plan in the course of an agent's run. What was said last outlives a run of the workflow."""

    def __init__(self) -> None:
        self._in_turn, self._asked, self._heard = False, False, -1

    async def report(self, agent: AgentRun, awaiting: Sequence[str], within_turn: bool) -> None:
        """Signal the plan when the agent's position, or what awaits approval, has changed; or with its calls."""
        self._heard = agent.run.seq if self._heard < 0 else self._heard  # a run that this one continues has reported
        name, line = agent.run.plan.id, agent.position
        if awaiting:
            line = f"{name} is awaiting approval of {', '.join(awaiting)}: plan approve {name} {awaiting[0]}"
        if agent.run.paused and not agent.run.held:
            line = f"{name} is paused: plan unpause {name}"
        is_new, again = line != agent.link.line, within_turn and self._in_turn
        self._in_turn = again
        if is_new or is_due(agent, within_turn, again):
            listed, self._in_turn = agent.link.listed, within_turn
            agent.link = agent.link.model_copy(update={"line": line})
            asks: dict[str, Any] = {"asks": list(awaiting)[:ASKS]} if is_new and (awaiting or self._asked) else {}
            self._asked = bool(awaiting)
            decided = self._decided(agent)
            says_more = awaiting or agent.tasks or agent.run.paused or not decided
            text = "; ".join([*decided, line] if is_new and says_more else decided)
            await report_to_parent(agent, text, is_new=not listed, **asks)
            agent.link = agent.link.model_copy(update={"listed": agent.tasks is not None})

    def _decided(self, agent: AgentRun) -> list[str]:
        """What people decided about its calls since the last report, in one sentence; empty if nothing."""
        news = [each for each in agent.run.log if each.seq > self._heard and each.kind in DECISIONS]
        self._heard = agent.run.seq
        told = "; ".join(each.text[:DECISION_CHARACTERS] for each in news)
        return [f"{agent.run.plan.id}: {told}"] if told else []


async def report_to_parent(
    agent: AgentRun, text: str, is_new: bool = False, own: Sequence[PastCall] = (), **more: Any
) -> None:
    """Signal `agent_progress` to the parent plan, if there is one, with the calls and usage since the last report.

    `text`: a line for the plan's log, or nothing. `is_new`: the parent has no task list yet. `own`: calls that are no
    steps of the agent's run. `more`: further fields.
    """
    parent = _parent(agent)
    if parent is None:
        return
    message = {"stepId": agent.order.step_id, **({"line": text[:500]} if text else {})}
    message |= {**progress_of(agent.tasks, is_new), **more}
    report = reports.report_of(agent)
    reports.noted(agent, report)
    report["calls"] += [call.model_dump(mode="json", exclude_defaults=True) for call in own]
    # A task of its own: the SDK swallows a cancellation that arrives while a signal is on its way.
    await asyncio.shield(asyncio.create_task(_signal(parent, message | report)))


async def _signal(parent: str, message: dict[str, Any]) -> None:
    with suppress(ApplicationError):  # the plan has already ended
        await workflow.get_external_workflow_handle(parent).signal("agent_progress", message)


def is_due(agent: AgentRun, within_turn: bool, again: bool) -> bool:
    """Whether to report to the parent plan without a line for its log: once per turn, and once within a turn.

    Within a turn (calls are running) only finished calls are news; `again`: they were reported in it before. Under a
    budget the plan learns at once that a request has ended: it may grant the next one to another agent.
    """
    if _parent(agent) is None:
        return False
    if agent.link.asks:
        ended = agent.link.requests < agent.asked
        return within_turn and (ended or (not again and reports.has_news(agent, within_turn)))
    return not again and reports.has_news(agent, within_turn)


async def report_the_rest(agent: AgentRun) -> None:
    """Report all once more, of an agent that was cancelled: it returns no result."""
    if _parent(agent) is not None:
        await report_to_parent(agent, "")


async def permitted(agent: AgentRun, characters: Callable[[], int]) -> None:
    """Wait until the parent plan grants the next LLM request, if it has a budget, and the end of a pause.

    The wait is not the agent's time.

    `characters`: the length of the prompt. Raises Unanswered: LLM_BUDGET when the plan refuses, INTERRUPTED when the
    agent is to stop.
    """
    number, began, run = agent.asked + 1, workflow.now(), agent.run
    must_ask = agent.link.asks and _parent(agent) is not None
    if not (must_ask or run.paused):
        return
    if must_ask:
        await report_to_parent(agent, "", request=number, estimate=estimate(characters()))
    await workflow.wait_condition(
        lambda: bool(
            run.stopped
            or (must_ask and agent.link.refusal)
            or ((not must_ask or agent.link.permitted >= number) and not run.paused)
        )
    )
    if run.stopped:
        raise Unanswered(run.stopped, INTERRUPTED)
    if must_ask and agent.link.refusal:
        raise Unanswered(agent.link.refusal, OVERRUN_CODE)
    waited = (workflow.now() - began).total_seconds()  # `AgentWorkflow` adds the time of the whole question
    agent.usage = agent.usage.model_copy(update={"seconds": round(agent.usage.seconds - waited, 3)})


def answered(agent: AgentRun, message: BudgetAnswer) -> None:
    """Take over the plan's answer to a request. Raises Refused if nothing was asked."""
    if message.number == 0 and _parent(agent) is not None:
        permitted = max(agent.link.permitted, agent.asked)  # a grant that has not been used yet stands
        agent.link = agent.link.model_copy(update={"asks": True, "permitted": permitted})
    elif not agent.link.asks or message.number != agent.asked + 1:
        raise Refused(f"LLM request {message.number} was not asked for", "NOT_ASKED")
    elif message.granted:
        agent.link = agent.link.model_copy(update={"permitted": message.number})
    else:
        agent.link = agent.link.model_copy(update={"refusal": message.reason or "the plan's LLM budget is used up"})


def _parent(agent: AgentRun) -> str | None:
    """The workflow id of the plan that the agent works for; None if it works for none."""
    parent = workflow.info().parent
    return parent.workflow_id if parent is not None and agent.order.step_id else None


async def _track(agent: AgentRun, kind: Kind, resumes: str = "") -> None:
    event = AgentEvent(
        kind=kind,
        agent_id=agent.run.plan.id or "",
        time=workflow.now(),
        agent_type=DEFAULT_TYPE,
        plan=base_id(agent.order.plan_id) or None,
        task_group=_what(agent),
        resumes=resumes,
    )
    warning = await _do(agent, "track_agent", event, f"agent history: {kind}")
    if warning:
        agent.run.note(LogKind.WARNING, str(warning), workflow.now())


async def _do(agent: AgentRun, name: str, argument: Any, summary: str) -> Any:
    try:
        return await workflow.execute_activity(
            name,
            argument,
            summary=summary,
            start_to_close_timeout=policies.SUMMARY.start_to_close,
            retry_policy=policies.SUMMARY.retry_policy,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise asyncio.CancelledError from error
        agent.run.note(LogKind.WARNING, f"activity {name} failed: {error.cause}", workflow.now())
        return None


def _what(agent: AgentRun) -> str:
    return " ".join(agent.order.request.split())[:200]
