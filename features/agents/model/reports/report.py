"""What an agent tells the plan it works for: its tool calls, files and LLM usage, while it works and when it ends.

Usage is reported as a whole and calls carry their numbers, so that a report that arrives twice, or the last one, which
holds everything, counts nothing again. Reports are bounded: what does not fit is in the next one.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from plansurvive.features.agents.model.run import AgentRun, asked_args, outcome_of, ran_args
from plansurvive.features.hosts.model import left_behind
from plansurvive.plans.activity_io import PastCall
from plansurvive.plans.execution.tool_history import MAX_PAST, add_files, cut, files_of_run, short
from plansurvive.plans.model import Step
from plansurvive.plans.run import DONE, Status, StepState
from plansurvive.plans.usage import Spent

REPORT_CHARACTERS = 24_000
"""Of all calls in one report, as JSON."""
CALL_CHARACTERS = 4_000
"""Of the arguments of one call, as JSON."""
RETRIED = 5
"""Attempts of one call that are reported besides its last one."""
REPORT_PATHS = 100
"""Of each kind, in one report."""


def spent_of(agent: AgentRun) -> Spent:
    """LLM usage of the agent and of the runs it resumes, by model."""
    return agent.run.ledger.spent(agent.run.llm_seconds)


def has_news(agent: AgentRun, within_turn: bool = False) -> bool:
    """Whether there is enough to report; reports become rarer, so that a long run does not fill the plan's history.

    `within_turn`: only calls count, while others of the same answer are running.
    """
    link = agent.link
    finished = sum(_is_done(agent, step) for step in agent.run.plan.steps[link.told :])
    if within_turn:
        return finished > link.reports // 100
    return max(finished, agent.asked - link.requests) > link.reports // 100


def report_of(agent: AgentRun) -> dict[str, Any]:
    """Fields of the next AgentProgress message, besides those of the task list. Changes nothing."""
    calls, told = _unreported(agent)
    files = StepState()
    for call in calls:
        state = agent.run.steps[agent.run.plan.steps[call.number - 1].id]
        add_files(files, state.wrote, state.deleted, state.shared, state.shared_with)
    lists = {"wrote": files.wrote, "deleted": files.deleted, "shared": files.shared, "sharedWith": files.shared_with}
    return {
        "agentId": agent.run.plan.id or "",
        "calls": [call.model_dump(mode="json", exclude_defaults=True) for call in calls],
        "told": told,
        **{name: paths[:REPORT_PATHS] for name, paths in lists.items() if paths},
        "spent": spent_of(agent).model_dump(mode="json", exclude_defaults=True),
        "finished": agent.asked,
    }


def noted(agent: AgentRun, report: dict[str, Any]) -> None:
    """Remember what was reported."""
    changes = {"told": report["told"], "requests": report["finished"], "reports": agent.link.reports + 1}
    agent.link = agent.link.model_copy(update=changes)


def last_report(agent: AgentRun) -> dict[str, Any]:
    """What the agent's result holds for its plan: files with stamps, the last calls, how many there were, and usage."""
    numbered = enumerate(agent.run.plan.steps[agent.link.since :], agent.link.since + 1)
    steps = [(number, step) for number, step in numbered if number not in agent.link.known]
    made = [call for number, step in steps if agent.run.steps[step.id].calls for call in _records(agent, step, number)]
    return {
        **files_of(agent),
        "calls": [call.model_dump(mode="json", exclude_defaults=True) for call in made[-MAX_PAST:]],
        "called": dict(Counter(call.tool for call in made)),
        "spent": spent_of(agent).model_dump(mode="json"),
        "finished": agent.asked,
        **left_behind(agent.run.host),
    }


def done_before(agent: AgentRun) -> tuple[int, list[int]]:
    """The calls of a run that is to be resumed that have ended: all up to a number, and those after it."""
    numbers = [number for number, step in enumerate(agent.run.plan.steps, 1) if _is_done(agent, step)]
    since = next((number for number in range(len(numbers) + 1) if number + 1 not in numbers), 0)
    return since, [number for number in numbers if number > since]


def files_of(agent: AgentRun) -> dict[str, Any]:
    """Files that the agent's calls changed, in the fields of a Return; None where a file has no stamp."""
    return files_of_run(agent.run)


def _unreported(agent: AgentRun) -> tuple[list[PastCall], int]:
    """The calls of the next report, and the number up to which all are reported then."""
    calls: list[PastCall] = []
    told, size, all_done = agent.link.told, 0, True
    for number, step in enumerate(agent.run.plan.steps[told:], told + 1):
        if not _is_done(agent, step):
            all_done = False
            continue
        if agent.run.steps[step.id].calls and number not in agent.link.known:
            records = _records(agent, step, number)
            size += sum(len(call.model_dump_json()) for call in records)
            if size > REPORT_CHARACTERS and calls:
                break
            calls += records
        told = number if all_done else told
    return calls, told


def _is_done(agent: AgentRun, step: Step) -> bool:
    state = agent.run.steps[step.id]
    return state.status in DONE or state.permanently_blocked


def _records(agent: AgentRun, step: Step, number: int) -> list[PastCall]:
    """A call as recorded, with the arguments that ran; before it, its attempts that were followed by another one."""
    run, state, own = agent.run, agent.run.steps[step.id], {"number": number, "agent": agent.run.plan.id}
    outcome, asked, decision = outcome_of(agent, step.id), asked_args(agent, step.id), run.decisions.get(step.id)
    began = next((change.time for change in state.changes if change.status is Status.RUNNING), None)
    last = PastCall(
        tool=step.tool,
        args=_bounded(ran_args(agent, step.id)),
        result=cut(outcome.text or (outcome.large.preview if outcome.large else "")),
        time=began or state.changes[-1].time,
        sandbox=state.sandbox,
        asked=None if asked is None else _bounded(asked),
        by=decision.by if decision and asked is not None else "",
    )
    retried = [call.model_copy(update={"call": 0}) for call in state.past if call.retried][-RETRIED:]
    return [call.model_copy(update=own) for call in (*retried, last)]


def _bounded(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments as recorded; of very many only the beginnings."""
    shown = short(args)
    if len(json.dumps(shown, ensure_ascii=False, default=str)) <= CALL_CHARACTERS:
        return shown
    return {name[:100]: cut(json.dumps(value, ensure_ascii=False, default=str))[:20] for name, value in
            list(shown.items())[:30]}  # fmt: skip
