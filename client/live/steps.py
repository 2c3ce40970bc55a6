"""Joins what is in flight to the steps of a plan's view, and says it in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from plansurvive.client.live.in_flight import InFlight
from plansurvive.plans.flow.ids import lineage
from plansurvive.plans.run import Status
from plansurvive.plans.views.models import BriefView
from plansurvive.plans.views.models.live import LiveView, attempt_text, told


def by_step(seen: Sequence[InFlight]) -> dict[str, LiveView]:
    """What is in flight, by step id; LLM requests of the plan itself have "". Of several, the one tried most often.

    The line of what an agent or a child plan does begins with its name.
    """
    found: dict[str, LiveView] = {}
    for each in seen:
        if each.step_id not in found or each.live.attempt > found[each.step_id].attempt:
            found[each.step_id] = _named(each)
    return found


def with_blocks(live: Mapping[str, LiveView]) -> dict[str, LiveView]:
    """`live`, and by the id of each block or loop what is told of the step inside it that was tried most often.

    Percent and attempts are that step's own, which `what` names.
    """
    found = dict(live)
    for name, each in sorted(live.items(), key=lambda known: known[1].attempt):
        outer = [*lineage(name)][-1:]
        if outer not in ([], [name]) and not each.is_plain:
            inner = name.removeprefix(outer[0]).lstrip(".")
            named = {"what": ": ".join(filter(None, (inner, each.what))), "line": f"{inner}: {each.line}".rstrip(": ")}
            found[outer[0]] = each.model_copy(update=named)
    return found


def joined(view: BriefView, live: Mapping[str, LiveView]) -> BriefView:
    """The view with `live` in the steps that run."""
    if not live:
        return view
    steps = [
        step.model_copy(update={"live": live[step.id]})
        if step.id in live and step.status is Status.RUNNING and not live[step.id].is_plain
        else step
        for step in view.steps
    ]
    return view.model_copy(update={"steps": steps})


def in_words(live: LiveView, now: datetime) -> str:
    """All that is known, in one line: attempt, percent, the last error or the line of progress."""
    if live.what:
        return told(live, now)
    last = live.attempts[-1] if live.attempts else None
    error = f"after {last.code or 'TOOL_FAILED'}: {last.error}" if last and live.next_at and not live.limit else ""
    share = "" if live.progress is None else f"{live.progress}%"
    return "  ".join(part for part in (attempt_text(live, now), share, error or live.line) if part)


def _named(each: InFlight) -> LiveView:
    if not each.agent and not each.below:
        return each.live
    named = {"what": each.what, "line": f"{each.what}: {each.live.line}".rstrip(": ")}
    return each.live.model_copy(update=named)
