"""A block or loop as rows of text: what is inside it in one line, and the steps in it that need a look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from plansurvive.plans.model import Step
from plansurvive.plans.run import Run, StepState
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.nested import InsideView
from plansurvive.plans.views.steps.below import asks_rows
from plansurvive.plans.views.steps.counting import Census
from plansurvive.plans.views.steps.listing import item_text
from plansurvive.plans.views.steps.row import row
from plansurvive.plans.views.steps.words import folded_line, inside_line

FILES = 20
"""Files of a block or loop that one row lists."""
CALLS = 5
"""Calls of steps inside a block or loop that are listed in full, and rows of what is asked below one of them."""
RowsOf = Callable[[Run, Step], list[str]]
"""Further rows about one step."""


def folded(census: Census, step_id: str) -> str:
    """What is inside a step in one line; empty for a step that has nothing inside, or has not begun."""
    inside = census.inside(step_id)
    return "" if inside is None else folded_line(step_id, InsideView.model_validate(inside))


def nested_rows(census: Census, run: Run, names: Sequence[str], asked: RowsOf) -> list[str]:
    """One row for each of these steps, and the calls that the first of them ask for."""
    rows, calls = list[str](), 0
    for name in names:
        state = run.steps[name]
        rows.append(f"        [{row(state).mark}] {line(name)} · {_how(census, run, name, state)}")
        if state.awaiting and calls < CALLS:
            calls += 1
            rows += [f"      {each}" for each in asked(run, run.outline.step(name))]
        rows += [f"            {each}" for each in asks_rows(run, name)[:CALLS]]
    return rows


def files_rows(census: Census, run: Run, step_id: str) -> list[str]:
    """The files that the steps inside a step wrote, on one row, and those that they deleted."""
    inside = [run.steps[name] for name in census.walk(step_id)]
    wrote = _paths("Files", (path for state in inside for path in state.wrote))
    return wrote + _paths("Deleted", (path for state in inside for path in state.deleted))


def _paths(label: str, paths: Iterable[str]) -> list[str]:
    seen = dict.fromkeys(paths)
    more = len(seen) - FILES
    text = ", ".join(line(path) for path in islice(seen, FILES)) + (f" and {more:,} more" if more > 0 else "")
    return [f"      {label}: {text}"] if seen else []


def _how(census: Census, run: Run, step_id: str, state: StepState) -> str:
    """How a step inside another one stands: its status, its item, its error, what is inside it."""
    stands, inside = row(state)._replace(word=census.word(step_id)), census.inside(step_id)
    parts = [line(stands.how), line(item_text(run, step_id)) if state.awaiting else ""]
    parts += [inside_line(InsideView.model_validate(inside))] if inside is not None else []
    why = line(stands.error or ("" if state.is_denied else stands.reason))[:300]
    return " · ".join(filter(None, parts)) + (f": {why}" if why else "")
