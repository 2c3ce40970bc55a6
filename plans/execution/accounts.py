"""What a plan knows of its agents and child plans while they work: their reports, the LLM requests they ask for.

A report is a message from outside: it counts only for the child that works on the step now. The child's result is
authoritative: what a report said wrongly is corrected by it.

Rejected: shares of the budget per agent (one stops while another has plenty), counting afterwards (exceeds by a request
per agent), grants of several requests (held for days by an agent that awaits an approval).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from plansurvive.plans.activity_io import PastCall
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.messages import AgentProgress
from plansurvive.plans.execution.tool_history import add_files, add_past, bounded, cut, forget, short
from plansurvive.plans.run import Run, Status, StepState
from plansurvive.plans.run.feature import RuleSet
from plansurvive.plans.usage import Account, Spent, Usage

MAX_REQUESTS = 10_000
"""LLM requests of one run of an agent, which `AgentLimits` bounds."""


def must_ask(run: Run, *, limited: bool) -> bool:
    """Whether the agents and child plans of a run ask before each LLM request: something limits them, here or above."""
    return limited or (run.parent is not None and run.parent.asks)


def received(run: Run, message: AgentProgress, now: datetime) -> None:
    """Take over an agent's report. Raises Refused if it is not from the agent that works on the step."""
    account, state = run.ledger.accounts.get(message.step_id), run.steps.get(message.step_id)
    if state is None or account is None or account.child != message.agent_id or state.status is not Status.RUNNING:
        text = f"'{message.agent_id[:200]}' does not work on step '{message.step_id}'"
        raise Refused(text, "UNKNOWN_AGENT")
    _check_numbers(account, message)
    if message.spent is not None:
        _count(run, message.step_id, message.spent)
    _record(run, message.step_id, message.calls, now)
    add_files(state, message.wrote, message.deleted, message.shared, message.shared_with)
    changes: dict[str, Any] = {
        "told": max(account.told, message.told),
        "finished": max(account.finished, message.finished),
    }
    request = None if _was_granted(account, message) else message.request
    if request is not None and (not account.waiting or request < account.waiting):
        changes |= {"waiting": request, "estimate": message.estimate, "since": run.next_seq()}
        if not account.is_plan:  # an agent that asks has no other request under way
            changes |= {"finished": message.finished, "granted": min(account.granted, message.finished)}
    _change(run, message.step_id, changes)
    run.next_seq()


def _check_numbers(account: Account, message: AgentProgress) -> None:
    """Raises Refused for numbers that no agent reports: they could hold up all agents of the plan for good."""
    before = account.granted if account.is_plan else message.finished
    if message.request is not None and message.request != before + 1 and not _was_granted(account, message):
        text = f"request {message.request} does not follow request {before}"
        raise Refused(text, "BAD_MESSAGE")
    if message.finished > max(account.finished, account.granted) + MAX_REQUESTS:
        raise Refused(f"no agent makes {message.finished} LLM requests", "BAD_MESSAGE")


def _was_granted(account: Account, message: AgentProgress) -> bool:
    """Whether a child plan asks again for what it was granted: it went on as a new run before the answer came."""
    return account.is_plan and message.request is not None and 0 < message.request <= account.granted


def ended(run: Run, step_id: str, result: Mapping[str, Any], now: datetime) -> None:
    """Take over what the result of a step's child holds, and close its account."""
    account, state = run.ledger.accounts.get(step_id), run.steps[step_id]
    if account is None:
        return None
    _count(run, step_id, Spent.model_validate(result["spent"]))
    _record(run, step_id, [PastCall.model_validate(call) for call in result.get("calls", ())], now)
    recorded = run.ledger.accounts[step_id].called
    for tool, number in result.get("called", {}).items():
        if number > recorded.get(tool, 0):
            forget(state, tool, number - recorded.get(tool, 0))
    return closed(run, step_id, lost=False)


def closed(run: Run, step_id: str, lost: bool) -> None:
    """Close the account of an agent that has ended. `lost`: without a result; its open request counts as sent."""
    account, state = run.ledger.accounts.get(step_id), run.steps[step_id]
    if account is None:
        return
    if lost and account.is_open:
        spent = account.spent
        unknown = spent.by_model.get("", Usage()).plus(Usage(calls=account.open))
        _count(run, step_id, spent.model_copy(update={"by_model": {**spent.by_model, "": unknown}}))
    run.ledger = run.ledger.account(step_id, None)
    state.proposal = None


def caught_up(run: Run, rules: RuleSet, now: datetime) -> Run:
    """A copy of an ended run with what its children did after their last report: the plan had ended before them."""
    new = run.model_copy(deep=True)
    for step_id in [name for name in new.ledger.accounts if name in new.steps]:
        rules.caught_up(new, step_id, now)
        closed(new, step_id, lost=True)
    return new


def waiting(run: Run) -> list[str]:
    """The steps whose agents wait for a request to be granted, in the order they asked."""
    accounts = {name: each for name, each in run.ledger.accounts.items() if name in run.steps}
    running = (name for name in accounts if run.steps[name].status is Status.RUNNING)
    asking = [(accounts[name].since, name) for name in running if accounts[name].waiting]
    return [name for _, name in sorted(asking)]


def answered(run: Run, step_id: str, granted: bool) -> int:
    """Note that an agent's request was granted or refused. Returns the request's number."""
    account = run.ledger.accounts[step_id]
    number = account.waiting
    _change(run, step_id, {"waiting": 0, "granted": max(account.granted, number) if granted else account.granted})
    return number


def told_to_ask(run: Run, step_id: str) -> None:
    """Note that an agent was told to ask before each request from now on."""
    _change(run, step_id, {"asks": True})


def _count(run: Run, step_id: str, spent: Spent) -> None:
    before = run.ledger.accounts[step_id].spent.seconds
    run.ledger = run.ledger.reported(step_id, spent)
    run.llm_seconds = max(0.0, round(run.llm_seconds - before + spent.seconds, 3))


def _record(run: Run, step_id: str, calls: Sequence[PastCall], now: datetime) -> None:
    """Record the calls that are not recorded yet."""
    account, state = run.ledger.accounts[step_id], run.steps[step_id]
    known = {call.number for call in state.past if call.agent == account.child}
    new = [call for call in calls if call.number > account.told and call.number not in known]
    called = dict(account.called)
    for call in new:
        called[call.tool] = called.get(call.tool, 0) + 1
    add_past(state, [_safe(call, account.child, now) for call in sorted(new, key=lambda call: call.number)])
    _change(run, step_id, {"called": called})


def _safe(call: PastCall, child: str, now: datetime) -> PastCall:
    """A record as the plan itself would have made it: bounded, and with a time that has a zone."""
    time = call.time if call.time.tzinfo is not None else now
    asked = None if call.asked is None else short(call.asked)
    own = {"agent": child, "time": time, "call": 0, "run": "", "attempt": call.attempt and bounded(call.attempt)}
    return call.model_copy(update={"args": short(call.args), "asked": asked, "result": cut(call.result), **own})


def _change(run: Run, step_id: str, changes: dict[str, Any]) -> None:
    run.ledger = run.ledger.account(step_id, run.ledger.accounts[step_id].model_copy(update=changes))


def question(state: StepState) -> bool:
    """Whether a person is asked about a request of the running step's agent or child plan."""
    return state.status is Status.RUNNING and state.awaiting == "approval" and state.proposal is not None
