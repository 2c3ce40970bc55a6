"""An agent's run that resumes an ended one: task list, conversation, files, and every call with its one result.

What becomes of the calls of the last answer, whose results the model has not been told:

- A call that has ended keeps its result: its value, its error, or a person's denial with the comment.
- One that had not begun is made by the new run; if it awaited approval, it asks again. A decision that a person has
  given stands, for the same call.
- One that was running when the run ended without settling it (the workflow was terminated) is not repeated: its result
  is unknown. The model decides what to do about it.

The results are reported once, when all of these calls have ended; so no result precedes the end of its call.

A call that had not begun is made by the resuming run and keeps its decision; reporting it as interrupted would cost a
request and a second decision. A call that was running is not repeated: the model learns that it may have happened.
"""

from __future__ import annotations

from datetime import datetime

from plansurvive.features.agents.model.order import AgentOrder
from plansurvive.features.agents.model.run import LOST, AgentRun, outcome_of
from plansurvive.plans.errors import IllegalMove
from plansurvive.plans.execution import schedule
from plansurvive.plans.execution.approvals import RULE
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import DONE, Decision, Result, Run, Status, StepState
from plansurvive.plans.step_state import Outcome
from plansurvive.plans.views.models.agents import AgentUsage

NOT_MADE = "the run was interrupted"
"""Why a call is not made that the model was told is not made."""


def resumed(agent: AgentRun, new_id: str, now: datetime, by: str = "") -> AgentRun:
    """A new run that resumes an ended one, with its task list, conversation and file state."""
    new = agent.model_copy(deep=True)
    run, old = new.run, agent.run.plan.id or ""
    run.plan = run.plan.model_copy(update={"id": new_id})
    run.options = run.options.model_copy(update={"directories": {**run.options.directories, **run.facts.directories}})
    schedule.reset_to_draft(run)
    run.resumes, run.interrupted, run.remembered = old, False, {}
    host, run.parts = run.host, {}  # whatever else features kept was about the run before
    run.host = host
    run.edited = dict.fromkeys(run.edited, RULE)  # nobody was asked about other calls in this run
    new.end, new.nudges, new.usage = None, 0, AgentUsage()
    _lose_running(run, now)
    for name in [name for name, state in run.steps.items() if state.status not in DONE]:
        run.steps[name] = _again(run, name) if name in new.called else schedule.left_out(NOT_MADE, opens=False)
    run.note(LogKind.RESUMES, f"resumes '{old}'{f' by {by}' if by else ''}: {new.position}", now)
    return new


def take_outcomes(agent: AgentRun) -> bool:
    """Queue the results of the last answer's calls for the model, if each of them has ended. Returns whether they have.

    One that has not, because the run was stopped before it began, is made by the run that resumes this one: only then
    is its result known. So a call leaves `called` once, with its one result. Raises IllegalMove for one still going on.
    """
    open_calls = [name for name in agent.called if not _has_ended(agent.run.steps[name], bool(agent.run.stopped))]
    if open_calls and agent.run.stopped:
        return False
    if open_calls:
        raise IllegalMove(f"'{open_calls[0]}' has not ended, so it has no result yet")
    agent.unsent += [outcome_of(agent, name) for name in agent.called]
    return True


def for_step(earlier: AgentRun, order: AgentOrder, new_id: str, now: datetime) -> AgentRun:
    """The run for a step of a resumed plan: resumes the step's agent, or takes over its answer if it has one."""
    if earlier.end == "completed":
        new = earlier.model_copy(deep=True)
        new.run.plan = new.run.plan.model_copy(update={"id": new_id})
    else:
        new = resumed(earlier, new_id, now)
    new.order = order
    return new


def without_tool(agent: AgentRun) -> list[str]:
    """Calls still to be made whose tool the present worker does not have."""
    tools = agent.run.facts.tools
    return [step.id for step in agent.run.plan.steps
            if step.tool not in tools and agent.run.steps[step.id].status not in DONE]  # fmt: skip


def leave_out(agent: AgentRun, names: list[str], reason: str) -> None:
    """Make none of these calls in this run."""
    for name in names:
        agent.run.steps[name] = schedule.left_out(reason, opens=False)


def _has_ended(state: StepState, is_stopped: bool) -> bool:
    """Whether a call will not be made any more, or was. What a stop has blocked may be made by a later run."""
    return state.status in DONE or (state.permanently_blocked and not is_stopped)


def _lose_running(run: Run, now: datetime) -> None:
    running = [name for name, state in run.steps.items() if state.status is Status.RUNNING]
    if not running:
        return
    moves = schedule.Schedule(run)
    for name in running:
        began = run.steps[name].changes[-1].time
        lasted = max(0.0, (now - began).total_seconds() * 1_000)
        result = Result(ok=False, error="it was running when the run ended", code=LOST, duration=lasted, timestamp=now)
        moves.settle(name, Outcome(Status.FAILED, result), now)


def _again(run: Run, name: str) -> StepState:
    """The state of a call that has not begun, with what a person has decided about it."""
    state, decision = run.steps[name], run.decisions.get(name)
    if decision is not None and not _stands(decision):
        del run.decisions[name]
        decision = None
    return StepState(args=state.args if decision is not None else None, past=state.past)


def _stands(decision: Decision) -> bool:
    """Whether a decision counts in the next run: a person's own one. Of a call that has not begun, none was used."""
    return not decision.remembered and decision.source != "timeout"
