"""Keeps a plan's view up to date from its events, so that a big plan is not sent whole for every change.

Events do not say which arguments await approval or which steps are permanently blocked: `apply` returns whether the
view has to be queried again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plansurvive.client.feature import views_of_features
from plansurvive.client.verbs.runs import BriefView, EventView
from plansurvive.plans.run import DONE, PlanStatus, Status
from plansurvive.plans.step_state import ASKING
from plansurvive.plans.views.models import BriefStep
from plansurvive.plans.views.steps.row import status_word


class Progress:
    """A view that each batch of events updates."""

    def __init__(self, view: BriefView) -> None:
        self.view = view
        self._places = {step.id: index for index, step in enumerate(view.steps)}

    def apply(self, events: Iterable[EventView]) -> bool:
        """Apply events to the view. False if a step may now await approval: its arguments are only in a new view."""
        known = True
        view, changed = self.view, _Changed(self.view)
        asked_with = [each.asked_with for each in views_of_features().proposals.values() if each.asked_with]
        for event in events:
            changed.seq = event.seq
            if event.logs and not event.step_id:
                changed.of_plan = PlanStatus(event.status)
            elif not event.logs and event.step_id in self._places:
                known = changed.move(self._places[event.step_id], event) and known
            elif any(entry.kind in asked_with for entry in event.logs or []):
                known = False  # a running step may have a person asked
        self.view = changed.on(view)
        return known


class _Changed:
    """The view's fields that events change, while a batch is applied."""

    def __init__(self, view: BriefView) -> None:
        self.seq, self.of_plan, self.started_at = view.seq, view.status, view.started_at
        self.steps, self.pending, self.counts = list(view.steps), view.pending, dict(view.counts)

    def on(self, view: BriefView) -> BriefView:
        fields = vars(self) | {"status": self.of_plan}
        return view.model_copy(update={name: value for name, value in fields.items() if name in BriefView.model_fields})

    def move(self, index: int, event: EventView) -> bool:
        step, status = self.steps[index], Status(event.status)
        moved = step.model_copy(update=_news(step, status, event))
        if not step.closes:  # the counts are of the plan's own steps
            before, after = status_word(step), status_word(moved)
            self.counts[before] = self.counts.get(before, 0) - 1
            self.counts[after] = self.counts.get(after, 0) + 1
        if step.awaiting:
            self.pending = [item for item in self.pending if item.step_id != step.id]
        if status is Status.RUNNING:
            self.started_at = self.started_at or event.time
        self.steps[index] = moved
        if event.awaiting is not None:
            return event.awaiting not in ASKING
        return status is not Status.READY or step.status not in (Status.READY, Status.RUNNING)


def _news(step: BriefStep, status: Status, event: EventView) -> dict[str, Any]:
    """The fields of a step that an event changes."""
    news: dict[str, Any] = {"status": status, "awaiting": None}
    if event.awaiting is not None:
        news["awaiting"] = event.awaiting
    if status is Status.RUNNING:
        news["started_at"] = event.time
    if status in DONE:
        news |= {"ended_at": event.time, "result": event.result or step.result}
    return news
