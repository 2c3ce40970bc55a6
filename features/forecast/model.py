"""The answer of `plan run --dry-run`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple

from pydantic import Field

from plansurvive.plans.run import Run
from plansurvive.plans.views.models import View

Outlook = Literal["run", "cached", "skip", "fail", "blocked", "depends"]
"""run: its tool is called. cached: it takes the result of an earlier run. depends: known only while the plan runs."""


class Taken(NamedTuple):
    """An earlier result that a call would take. `is_known`: its value is here, and not stored outside."""

    place: str
    value: Any = None
    is_known: bool = True


class Foreseen(NamedTuple):
    """How a plan that a step runs would end. `code`: it would fail its step; empty: it would not."""

    code: str = ""
    error: str = ""
    value: Any = None
    is_known: bool = False


class Below(NamedTuple):
    """The plan that a step would run."""

    run: Run
    """As it would start."""
    ended: Callable[[Collection[str]], Foreseen]
    """How it ends, once all its steps have been looked at; given those whose value is not known."""


class ForeseenChange(View):
    """What a call would do to a file, as far as that is known before."""

    path: str
    kind: str = Field(description="created, changed, deleted, same, not_applicable, not_shown, unknown.")
    note: str = Field(description="A sentence.")
    rows: list[str] = Field(default_factory=list, description="The lines of a unified diff.")


class ForeseenStep(View):
    """What would become of a step, or of one of the steps inside a block or a loop."""

    step_id: str = Field(description="One of a child plan as its parent names it: `deploy/upload`.")
    tool: str = Field(default="", description="Empty: a block or a loop.")
    outlook: Outlook
    why: str = Field(default="", description="A sentence; of a step that runs perhaps empty.")
    depends_on: list[str] = Field(default_factory=list, description="Steps that decide what becomes of it.")
    items: int | None = Field(default=None, description="Of a loop: how many items it has.")
    rounds: int | None = Field(default=None, description="Of a repetition: how many rounds it has at most.")
    asks: str = Field(
        default="", description="Why it, or each item of a loop not known yet, would wait for a person; empty: no wait."
    )
    taken_from: str = Field(default="", description="PLAN/STEP whose result it would have.")
    change: ForeseenChange | None = None
    seconds: float | None = Field(default=None, description="Median of earlier runs; null: none is known.")


class ForeseenUndo(View):
    """What would undo a step, of all its items alike."""

    step_id: str = Field(description="The step, without items.")
    tool: str = Field(default="", description="Empty: steps.")
    asks: str = Field(default="", description="Why it would wait for a person; empty: it would not.")


class Forecast(View):
    """What a plan would do if it were started now."""

    title: str
    workspace: str
    steps: list[ForeseenStep]
    more: int = Field(default=0, description="Further steps that were not looked at.")
    rollback: bool = Field(default=False, description="Whether the plan undoes its steps by itself if one fails.")
    undos: list[ForeseenUndo] = Field(default_factory=list, description="In the order of their steps.")
    seconds: float | None = Field(default=None, description="How long it would take; null: no step's time is known.")
    untimed: int = Field(default=0, description="Steps that would run and whose time is not known.")
    tokens: int | None = Field(default=None, description="Median of the tokens that earlier runs used.")
    cost: float | None = Field(default=None, description="The same in PLANS_LLM_PRICES; null: no price is known.")
    earlier: int = Field(default=0, description="Earlier runs that the figures rest on.")
    notes: list[str] = Field(default_factory=list, description="What was not looked at, and why.")
