"""What the review screen knows beside a plan's view: what calls would change in files, and which steps will ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plansurvive.plans.flow.ids import template_of
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.views.models import StepView
from plansurvive.plans.views.models.card import Card

OVERWRITES = "asks if it would write over a file that the run has not seen"


@dataclass(frozen=True)
class Around:
    """Of one plan at one moment."""

    changes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By step that awaits a decision, what its call would change in a file (`Card.change`)."""
    asking: Mapping[str, str] | None = None
    """By step that will wait for a person, why (`client.requests.asking`); None: that is not known."""

    def card(self, item: Card) -> Card:
        """A pending decision with what its call would change."""
        return item.model_copy(update={"change": dict(self.changes.get(item.step_id, {}))})

    def why(self, step: StepView) -> str:
        """Why a step that has not started will ask, in a sentence; empty if it will not."""
        if self.asking is None:
            return OVERWRITES if step.tool == "write_file" else ""
        name = template_of(step.id)
        inside = [each for each in self.asking if each.startswith(f"{name}.")]
        if not inside or name in self.asking:
            return self.asking.get(name, "")
        return f"{number_of(len(inside), 'step')} inside will ask: {', '.join(inside[:5])}"

    def will_ask(self, step: StepView) -> bool:
        """Whether it is known that the step, or one inside it, will ask."""
        return bool(self.asking) and bool(self.why(step))


NOTHING = Around()
