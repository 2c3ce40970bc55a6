"""What people are asked: the pending decisions of a run, and the call that a decision on a step would be about."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from plansurvive.plans.execution import approvals, undo_consent
from plansurvive.plans.execution.asking import digest_of_question, question_of
from plansurvive.plans.execution.deciding import reasons
from plansurvive.plans.expressions.references import find
from plansurvive.plans.flow.ids import pattern_of
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Step
from plansurvive.plans.model.opaque import scanned
from plansurvive.plans.run import Run
from plansurvive.plans.run.step_call import StepCall, digest_of, upcoming
from plansurvive.plans.step_state import ASKING
from plansurvive.plans.views.models.card import QUESTION, Card
from plansurvive.plans.views.steps.listing import item_text

LISTED = 200
"""Pending decisions inside loops that a view has with their calls; further ones are counted."""


def pending(run: Run) -> list[dict[str, Any]]:
    """The pending decisions (Cards), oldest first."""
    return [_json(card(run, step)) for step in _waiting(run)[0]]


def more_pending(run: Run) -> dict[str, Any]:
    """Those that `pending` has no room for, counted by pattern, under `morePending`; empty if there are none."""
    number = Counter(pattern_of(step.id) for step in _waiting(run)[1])
    return {"morePending": dict(number)} if number else {}


def _waiting(run: Run) -> tuple[list[Step], list[Step]]:
    """The steps that await a decision, oldest first; apart, those in loops that there is no room for."""
    names = [name for name, state in run.steps.items() if state.awaiting in ASKING]
    steps = [step for name in names if (step := run.step_of(name)) is not None]
    steps.sort(key=lambda step: run.steps[step.id].changes[-1].seq)
    if len(steps) <= LISTED or not run.opened:
        return steps, []
    inner = [step for step in steps if run.outline.nodes[step.id].parent is not None]
    left = {step.id for step in inner[LISTED:]}
    return [step for step in steps if step.id not in left], inner[LISTED:]


def call_view(run: Run, step_id: str) -> dict[str, Any]:
    """What a decision on the step would be about now (a CallView); empty if the plan has no such step."""
    step = run.step_of(step_id)
    if step is None:
        return {}
    if run.steps[step_id].awaiting in ASKING:
        return _json(card(run, step)) | {"isWhole": True}
    if run.language.tool(step.tool).is_question and (known := question_of(run, step)) is not None:
        digest = digest_of_question(known)
        return _json(Card(**_shown(run, step, known), kind=QUESTION, digest=digest)) | {"isWhole": True}
    call = upcoming(run, step)
    found = _shown(run, step, call.call.args) | _why(run, step, call.call)
    view = _json(Card(**found, kind="early", digest=digest_of(call.call))) | {"isWhole": call.is_whole}
    return view | ({"decided": decided} if (decided := approvals.decided(run, step_id)) else {})


def card(run: Run, step: Step) -> Card:
    """What a person is asked about a step."""
    state = run.steps[step.id]
    kind = QUESTION if state.wants_answer else next(iter(state.proposal or {}), "approval")
    found = _shown(run, step, state.asked or run.args_of(step))
    found |= {} if kind == QUESTION else _why(run, step, upcoming(run, step).call._replace(args=found["args"]))
    found = run.views.card(run, step, found) if kind == "approval" else found
    if kind == "approval" and (undo := undo_consent.undo_call(run, step)) is not None:
        found["undo"] = {"tool": undo.tool, "args": undo.args}
    since = (state.proposal or {}).get("since") or state.changes[-1].time
    return Card.of(run.views, **found, kind=kind, digest=state.digest, since=since, deadline=state.deadline)


def _json(card: Card) -> dict[str, Any]:
    """A card as JSON data; its arguments are that already, and may be long."""
    return card.model_dump(mode="json", exclude={"args"}, exclude_unset=True) | {"args": card.args}


def _why(run: Run, step: Step, call: StepCall) -> dict[str, Any]:
    """Who asks, why, and what would be approved as well by `remember`."""
    why = {"asker": reasons.asker(run), "reasons": reasons.reasons(run, step, call)}
    always = reasons.remembered_scope(run, step, call)
    return why | ({"always": always} if always else {})


def _shown(run: Run, step: Step, args: dict[str, Any]) -> dict[str, Any]:
    """The whole call with these arguments: fields of its card."""
    roots = [] if run.literal else [each.root for each in find(scanned(step.tool, args))]
    large = {root: large for root in roots if (large := _stored(run, step.id, root))}
    return {
        **({"large": large} if large else {}),
        "step_id": step.id,
        **({"item": item} if (item := item_text(run, step.id)) else {}),
        "tool": step.tool,
        "description": run.description_of(step),
        "args": args,
        "queue": run.queue_of(step),
        "workspace": run.workspace_of(step),
        "network": args.get("network") is True,
        **({"as_asked": True} if approvals.is_as_asked(run, step) else {}),
        "changed": approvals.is_changed(run, step.id),
        "version": run.plan.version,
    }


def _stored(run: Run, step_id: str, root: str) -> LargeValue | None:
    """Where the value of a step is stored, if it is too large for history: its hash tells what is approved."""
    found = run.outline.find(step_id, root)
    state = run.steps.get(found.step_id) if found is not None and found.step_id is not None else None
    result = state.result if state is not None else None
    return result.large if result else None


def iso(time: datetime | None) -> str | None:
    """A time as ISO 8601 with `Z` for UTC."""
    return None if time is None else time.isoformat().replace("+00:00", "Z")
