"""The query `inside`: the steps inside a block or loop one by one, in pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from plansurvive.plans.execution.messages import InsideAsked
from plansurvive.plans.execution.readiness import needed
from plansurvive.plans.flow.ids import is_pattern, matches
from plansurvive.plans.run import Run
from plansurvive.plans.run.step_call import upcoming
from plansurvive.plans.views.progress.events import result_view
from plansurvive.plans.views.steps.counting import Census
from plansurvive.plans.views.steps.values import result_with_value
from plansurvive.plans.views.steps.views import BriefOf, instance_view
from plansurvive.plans.views.text import is_done
from plansurvive.plans.views.views import calls_view, decision_view, notes_of

CALLS = 20
"""Calls and attempts of the step that was asked for; the others are counted."""
PAGE_BYTES = 1_000_000
"""Length of an answer, as JSON, from which on the other steps are left to the next query."""


def inside_page(run: Run, asked: InsideAsked, brief: BriefOf) -> dict[str, Any]:
    """The step itself, what is inside it (BriefSteps with whole results), and the number to go on from (`next`).

    Empty if there is no such step, or none that fits.
    """
    census, found, size = Census(run), list[dict[str, Any]](), 0
    if not is_pattern(asked.step_id) and run.step_of(asked.step_id) is None:
        return {}
    names, place = list(islice(_wanted(census, run, asked), asked.since, asked.since + asked.limit + 1)), asked.since
    for name in names[: asked.limit]:
        view = _whole(census, run, name, brief)
        size += len(json.dumps(view, default=str))
        if found and size > PAGE_BYTES:
            return _page(census, run, asked, found, brief, place)
        found.append(view)
        place += 1
    return _page(census, run, asked, found, brief, place if len(names) > asked.limit else None)


def _page(
    census: Census, run: Run, asked: InsideAsked, found: list[dict[str, Any]], brief: BriefOf, after: int | None
) -> dict[str, Any]:
    head: dict[str, Any] = {}
    if not is_pattern(asked.step_id):
        head = {"step": _whole(census, run, asked.step_id, brief) | _in_full(run, asked.step_id)}
    if asked.unfinished and (done := sum(is_done(run.steps[name]) for name in _names(census, run, asked))):
        head["done"] = done
    return {**head, "steps": found, **({} if after is None else {"next": after})}


def _wanted(census: Census, run: Run, asked: InsideAsked) -> Iterator[str]:
    names = _names(census, run, asked)
    return (name for name in names if not is_done(run.steps[name])) if asked.unfinished else names


def _names(census: Census, run: Run, asked: InsideAsked) -> Iterator[str]:
    if is_pattern(asked.step_id):
        return _fitting(run.steps, asked.step_id)
    return iter(census.children(asked.step_id)) if asked.direct else census.walk(asked.step_id)


def _fitting(names: Iterable[str], pattern: str) -> Iterator[str]:
    return (name for name in names if matches(pattern, name))


def _whole(census: Census, run: Run, step_id: str, brief: BriefOf) -> dict[str, Any]:
    """One step with its value and its files."""
    step, state = run.step_of(step_id), run.steps[step_id]
    if step is None:
        return {}
    view = instance_view(census, run, step_id, brief)
    view |= {"args": run.args_of(step)} if "args" not in view else {}
    if state.result is not None:
        view["result"] = result_with_value(run, step_id, result_view(state.result))
    view |= {"reason": state.reason} if state.reason else {}
    return view | ({"files": list(state.wrote)} if state.wrote else {})


def _in_full(run: Run, step_id: str) -> dict[str, Any]:
    """What only the step that was asked for has: its calls, its decision, what it says and needs."""
    step, state = run.step_of(step_id), run.steps[step_id]
    if step is None:
        return {}
    calls = calls_view(run, step)
    named = (run.outline.find(step_id, name) for name in needed(run, step))
    found: dict[str, Any] = {
        "args": run.args_of(step) if step.is_block else upcoming(run, step).call.args,  # with values, as far as known
        "needs": [each.step_id for each in named if each is not None and each.step_id],
        "notes": notes_of(step, state),
        "mended": state.mended,
        "deleted": state.deleted,
        "warnings": list(state.warnings),
        "calls": calls[-CALLS:],
        "moreCalls": state.more_past + max(0, len(calls) - CALLS),
    }
    if step_id in run.decisions:
        found["decision"] = decision_view(run.decisions[step_id])
    if state.answer is not None:
        found["answer"] = state.answer.view()
    return {name: value for name, value in found.items() if value not in ([], {}, "", 0, None)}
