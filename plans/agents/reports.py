"""What an agent tells the plan it works for: its tool calls, files and LLM usage, while it works and when it ends.

Usage is reported as a whole and calls carry their numbers, so that a report that arrives twice, or the last one, which
holds everything, counts nothing again. Reports are bounded: what does not fit is in the next one.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from plans.agents.run import AgentRun, number_of, outcome_of
from plans.budget import MAX_MODELS, Spent, Usage
from plans.execution.tool_history import MAX_PAST, add_files, cut, short
from plans.log import PastCall
from plans.model import Step
from plans.run import DONE, Status, StepState

REPORT_CHARACTERS = 24_000
"""Of all calls in one report, as JSON."""
CALL_CHARACTERS = 4_000
"""Of the arguments of one call, as JSON."""
REPORT_PATHS = 100
"""Of each kind, in one report."""


def spent_of(agent: AgentRun) -> Spent:
    """LLM usage of the agent and of the runs it resumes, by model."""
    ledger, by_model = agent.run.ledger, dict[str, Usage]()
    for model, usage in ledger.by_model.items():
        name = model[:200] if len(by_model) < MAX_MODELS - 1 else ""
        by_model[name] = by_model.get(name, Usage()).plus(usage)
    return Spent(
        by_model=by_model,
        seconds=round(agent.run.llm_seconds, 3),
        largest=ledger.largest,
        longest=ledger.longest,
    )


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
        state = agent.run.steps[f"call_{call.number}"]
        add_files(files, state.wrote, state.deleted, state.shared)
    lists = {"wrote": files.wrote, "deleted": files.deleted, "shared": files.shared}
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
    made = [step for step in agent.run.plan.steps[agent.link.since :] if agent.run.steps[step.id].calls]
    return {
        **files_of(agent),
        "calls": [_call(agent, step).model_dump(mode="json") for step in made[-MAX_PAST:]],
        "called": dict(Counter(step.tool for step in made)),
        "spent": spent_of(agent).model_dump(mode="json"),
        "finished": agent.asked,
    }


def files_of(agent: AgentRun) -> dict[str, Any]:
    """Files that the agent's calls changed, in the fields of a Return; None where a file has no stamp."""
    files, stamps = StepState(), agent.run.files.stamps
    states = [state for state in agent.run.steps.values() if state.changes]
    for state in sorted(states, key=lambda state: state.changes[-1].seq):
        add_files(files, state.wrote, state.deleted, state.shared)
    return {
        "wrote": {name: stamps[name].model_dump(mode="json") if name in stamps else None for name in files.wrote},
        "deleted": files.deleted,
        "shared": files.shared,
        "moreFiles": sum(state.more_files for state in states),
    }


def _unreported(agent: AgentRun) -> tuple[list[PastCall], int]:
    """The calls of the next report, and the number up to which all are reported then."""
    calls: list[PastCall] = []
    told, size, all_done = agent.link.told, 0, True
    for number, step in enumerate(agent.run.plan.steps[told:], told + 1):
        if not _is_done(agent, step):
            all_done = False
            continue
        if agent.run.steps[step.id].calls:
            call = _call(agent, step)
            size += len(call.model_dump_json())
            if size > REPORT_CHARACTERS and calls:
                break
            calls.append(call)
        told = number if all_done else told
    return calls, told


def _is_done(agent: AgentRun, step: Step) -> bool:
    state = agent.run.steps[step.id]
    return state.status in DONE or state.never


def _call(agent: AgentRun, step: Step) -> PastCall:
    """A call as recorded, with the arguments that ran."""
    run, state = agent.run, agent.run.steps[step.id]
    began = next((change.time for change in state.changes if change.status is Status.RUNNING), None)
    if began is None:
        began = state.changes[-1].time if state.changes else agent.run.log[-1].time
    outcome = outcome_of(agent, step.id)
    text = outcome.text or (outcome.large.preview if outcome.large else "")
    args, decision = short(run.args_of(step)), run.decisions.get(step.id)
    if len(json.dumps(args, ensure_ascii=False, default=str)) > CALL_CHARACTERS:
        args = {name: cut(json.dumps(value, ensure_ascii=False, default=str))[:20] for name, value in args.items()}
        args = dict(list(args.items())[:50])
    changed = state.args is not None and state.args != step.args
    return PastCall(
        tool=step.tool,
        args=args,
        result=cut(text if outcome.ok else f"Error: {text}"),
        time=began,
        sandbox=state.sandbox,
        number=number_of(step.id),
        agent=run.plan.id or "",
        edited_by=((decision.by if decision else "") or "a person") if changed else "",
    )
