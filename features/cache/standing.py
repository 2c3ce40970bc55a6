"""Why a step that has not completed stands as it does: what it waits for, why it failed, why it was skipped.

Sentences about the run as it is now, and the steps that explain them further: those that a blocked step waits for,
those that failed inside a block or loop. Decides nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from plansurvive.plans.children.asked import AskedBelow, asked_below
from plansurvive.plans.children.family import members_of
from plansurvive.plans.definition.scopes import UNDO
from plansurvive.plans.errors import OUTCOME_UNKNOWN
from plansurvive.plans.execution.deciding.reasons import reasons as approval_reasons
from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.model import Step
from plansurvive.plans.run import ENDED, PlanStatus, Run, Status, StepState
from plansurvive.plans.run.step_call import upcoming
from plansurvive.plans.text.lists import some
from plansurvive.plans.text.safe_text import quoted
from plansurvive.plans.text.traces import folded
from plansurvive.plans.views.models.card import command
from plansurvive.plans.views.steps.row import decided, denied_ahead, row

NAMED = 5
"""Steps that a sentence names; further ones are counted."""


class Standing(NamedTuple):
    """How a step stands, and why."""

    reasons: list[str]
    steps: list[str]
    """The steps that explain it further."""


def standing(run: Run, step: Step) -> Standing | None:
    """Why a step has not completed; None if it has."""
    state = run.steps[step.id]
    if state.status is Status.COMPLETED:
        return None
    if state.status is Status.FAILED:
        inside = _failed_inside(run, step.id)
        return Standing([_failed(state, inside), *_of_lost(run, step, state)], inside)
    if state.status is Status.SKIPPED:
        return Standing([_skipped(run, step, state)], [])
    if state.awaiting:
        return Standing(_awaited(run, step, state), [])
    if state.status is Status.RUNNING:
        return _running(run, step, state)
    return _not_begun(run, step, state)


def _failed(state: StepState, inside: list[str]) -> str:
    """`inside`: the steps in it that failed; what is said of one of them is not said of both."""
    stands, result = row(state), state.result
    how = f"it {stands.how}"
    said = folded((result.error if result is not None else "") or state.reason)
    told = next((each for name in inside if said.startswith(each := f"step '{name}' failed")), "")
    said = told or said
    return f"{how}: {said}" if said else how


def _of_lost(run: Run, step: Step, state: StepState) -> list[str]:
    """Of a call that was lost: how it is made again, as the plan stands."""
    if state.result is None or state.result.code != OUTCOME_UNKNOWN or run.literal:
        return []
    name, own = run.plan.id or "", quoted(step.id)
    again = {"": f"plan rerun {name} --from {own}", UNDO: f"plan undo {name}"}.get(state.closes)
    if again is None:
        return []
    if run.status in ENDED:
        return [f"check what it did; {again} calls it again"]
    return [f"check what it did; when the plan has ended, {again} calls it again (plan interrupt {name} ends it)"]


def _skipped(run: Run, step: Step, state: StepState) -> str:
    decision = run.decisions.get(step.id)
    if state.is_unanswered:
        return f"it was not answered: {state.reason}"
    if state.is_denied and decision is not None:
        return f"it was denied {decided(decision).text}".rstrip()
    why = state.reason or (state.result.error if state.result is not None else "")
    word = "denied" if state.is_denied else "skipped"
    return f"it was {word}: {why}" if why else f"it was {word}"


def _awaited(run: Run, step: Step, state: StepState) -> list[str]:
    name, kind = run.plan.id or "", next(iter(state.proposal or {}), "approval")
    until = f", until {state.deadline:%Y-%m-%d %H:%M:%S} UTC" if state.deadline else ""
    if state.awaiting == "answer":
        return [f"it awaits an answer{until}: {command(name, step.id, 'answer')}"]
    if state.awaiting == "event":
        event = run.args_of(step).get("event")
        is_known = isinstance(event, str) and "{{" not in event and "$" not in event
        what = f"the event '{event}'" if is_known else "an event"
        return [f"it awaits {what}{until}: plan event {name} {quoted(str(event)) if is_known else 'NAME'}"]
    if state.awaiting == "recovery":
        failure = state.failure
        code = f" ({failure.code})" if failure and failure.code else ""
        return [f"it failed{code}, and the LLM is asked how to recover it: {failure.error if failure else ''}"]
    why = [f"it asks because {each}" for each in approval_reasons(run, step, upcoming(run, step).call)]
    return [f"it awaits approval{until}: {command(name, step.id, kind)}", *why]


def _running(run: Run, step: Step, state: StepState) -> Standing:
    since = f" since {state.began:%Y-%m-%d %H:%M:%S} UTC" if state.began else ""
    until = f"; it continues at {state.deadline:%Y-%m-%d %H:%M:%S} UTC" if state.deadline else ""
    rows = [f"{f'it has been running{since}' if since else 'it is running'}{until}"]
    if below := [each.id for each in members_of(run, step, state)]:
        rows.append(f"'{below[-1]}' works on it: plan show {quoted(below[-1])}")
    rows += [row for below in asked_below(run, [step.id]) for row in _asked_for(run.plan.id or "", below)]
    if (event := run.views.event(run.plan.id or "", step, state)) is not None:
        rows.append(f"below it the event '{event}' is awaited: plan event {run.plan.id} {quoted(event)}")
    last = next((call.attempt for call in reversed(state.past) if call.attempt and call.attempt.error), None)
    if last is not None:
        code = f" ({last.code})" if last.code else ""
        rows.append(f"attempt {last.number} failed{code}: {folded(last.error)}")
    return Standing(rows, _under_way_inside(run, step.id))


def _asked_for(plan: str, below: AskedBelow) -> list[str]:
    """What is awaited by the agent or child plan of a step, and below it."""
    rows = [
        f"it awaits {'an answer' if each.kind == 'answer' else 'approval'}: {command(plan, each.path, each.kind)}"
        for each in below.asked[:NAMED]
    ]
    more = below.more + max(0, len(below.asked) - NAMED)
    return rows + ([f"it awaits {more} more: plan pending {plan}"] if more else [])


def _under_way_inside(run: Run, step_id: str) -> list[str]:
    """The steps right inside a block or loop that await something or run, what awaits a person first."""
    states = {name: run.steps[name] for name in run.outline.nodes[step_id].children if name in run.steps}
    open_ones = [name for name, state in states.items() if state.awaiting or state.status is Status.RUNNING]
    asking = {each.step_id for each in asked_below(run, open_ones) if each.asked or each.more}
    return sorted(open_ones, key=lambda name: not (states[name].awaiting or name in asking))[:NAMED]


def _not_begun(run: Run, step: Step, state: StepState) -> Standing:
    """Of a step that has not started: what keeps it from that, the strongest reason first."""
    if state.permanently_blocked and not run.problems:  # of a plan that was refused, the problem says more
        return Standing([f"it never starts: {state.reason}"], ReadinessIndex(run).open_needs(step.id))
    # A denial before its turn: nothing else that it waits for lets it run.
    if denied := denied_ahead(run.decisions.get(step.id), state.status):
        needs = ReadinessIndex(run).open_needs(step.id)
        return Standing([f"it was {denied}", *_until_skipped(run, needs)], needs[:NAMED])
    # 1. The plan as a whole: it ended or stopped, or has not started.
    if whole := _whole_plan(run):
        return Standing([f"it has not started: {whole}"], [])
    # 2. Steps that it depends on.
    if needs := ReadinessIndex(run).open_needs(step.id):
        return Standing([f"it waits for {some(needs, NAMED)}"], needs[:NAMED])
    # 3. What keeps every step from starting.
    if held := [notice.text for notice in run.notices.values() if notice.holds]:
        return Standing([f"it has not started: the plan {held[0]}"], [])
    if run.status is PlanStatus.PAUSED:
        return Standing([f"it has not started: the plan is paused; plan unpause {run.plan.id}"], [])
    if state.queued:
        text = (
            "it may start, and waits for a place in its loop: as many items are in progress as may be (`maxParallel`)"
        )
        return Standing([text], [])
    return Standing(["it may start, and waits for its turn: as many steps run as may at a time (`maxParallel`)"], [])


def _until_skipped(run: Run, needs: list[str]) -> list[str]:
    """When a step is skipped that was denied before its turn; nothing once the plan has ended."""
    if run.status in ENDED:
        return []
    after = f" after {', '.join(needs[:NAMED])}" if needs else ""
    return [f"it is skipped when its turn comes{after}, and what depends on it never starts"]


def _whole_plan(run: Run) -> str:
    if run.problems:
        first = run.problems[0].text
        return f"first fix: {first}" if run.status is PlanStatus.REVIEW else f"the plan was refused: {first}"
    if run.stopped:
        return f"the plan was stopped: {run.stopped}"
    if run.status in ENDED:
        return f"the plan ended before ({run.status.value})"
    if run.status is PlanStatus.REVIEW:
        return f"the plan is in review; plan begin {run.plan.id}"
    return "the plan has not started" if run.status is PlanStatus.DRAFT else ""


def _failed_inside(run: Run, step_id: str) -> list[str]:
    """The steps right inside a block or loop that failed."""
    children = run.outline.nodes[step_id].children
    failed = [name for name in children if name in run.steps and run.steps[name].status is Status.FAILED]
    return failed[:NAMED]
