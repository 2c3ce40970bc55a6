"""The seam of views: what a feature adds to what any view shows of a step, to what a person is asked, its workflows.

A feature fills it once, and every view has it: `plan pending` and the board, the page, the review screen, MCP, JSON.
Views ask the features of the process that draws them (`Run.views`): a worker's, or a client's that reads the record of
an ended plan. What they say follows from the step and its state alone, so that any process with the feature says the
same. What a feature says of a plan as a whole is a notice (`plans.notice`).

    IN_VIEWS = InViews("agents", details=lambda plan_id, step, state: [f"Agent: plan show {agent_of(step)}"])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from plansurvive.plans.child_state import Asked
from plansurvive.plans.model import Step
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.proposals import Proposal
from plansurvive.plans.step_state import Consent, StepState


class Member(NamedTuple):
    """A workflow that a step began, and whose work is the plan's: an agent or a child plan."""

    id: str
    """Its plan id; of an agent, the id of its workflow."""
    prefix: str
    """What its steps' ids have in front in the plan that began it: `deploy/` of a plan, `research.` of an agent."""


class Below(NamedTuple):
    """Decisions that the agent or child plan of a step awaits, or a plan or agent further below."""

    plan_id: str
    """The agent or child plan of the step."""
    asked: Sequence[Asked]
    """With paths as the agent or child plan names them: `upload`, `review/call_1`."""
    more: int = 0
    """How many more there are."""


class Viewer(NamedTuple):
    """The person to whom a card is shown."""

    name: str
    is_proven: bool = True
    """A login or a key of their own proves what they decide here."""


class Way(NamedTuple):
    """What a person may do about a card, beside approving and denying."""

    verb: str
    """As in `client.runs` and in the address of the page: `withdraw`."""
    label: str
    """The text of its button."""
    option: str = ""
    """The option of the verb that is set."""
    text: str = ""
    """What follows from it, in sentences."""
    comment: str = ""
    """What the comment has to say; empty: it needs none."""


class AskedOf(Protocol):
    """What features look at of a card (`plans.views.models.card`)."""

    @property
    def consents(self) -> Sequence[Consent]:
        """Who must approve, and who has."""


@dataclass(frozen=True)
class InViews:
    """What one feature adds. A seam that it does not fill is None. The first argument is the id of the plan."""

    name: str
    """Name of the feature, as in `features.FEATURES`."""
    fields: Callable[[str, Step, StepState], Mapping[str, Any]] | None = None
    """Fields of the step as JSON, in the full view as in the brief one. Example: `agents` adds the list of tasks.

    Asked for each step of each view: without anything to say it has to return at once.
    """
    rows: Callable[[str, Step, StepState], Iterable[str]] | None = None
    """Rows below the step in each text of the plan, before its notes; safe to print. Example: the agent's tasks."""
    details: Callable[[str, Step, StepState], Iterable[str]] | None = None
    """Further rows in `plan show`; safe to print. Example: the command that shows the agent."""
    standing: Callable[[str, Step, StepState], str] | None = None
    """How far the step is, on its line in Temporal's UI. Example: `1/3 Write the tests`."""
    member: Callable[[str, Step, StepState, int], Member | None] | None = None
    """The workflow that the call of this number began; None: it began none that the feature knows."""
    below: Callable[[str, Step, StepState], Below | None] | None = None
    """What people are asked by the workflow that works on a running step, and below it; None: nothing."""
    event: Callable[[str, Step, StepState], str | None] | None = None
    """The name of an event that the step waits for, or one below it; None: none does. Asked of steps that await
    something, and of running ones with parts."""
    card: Callable[[Parted, Step], Mapping[str, Any]] | None = None
    """Fields of the card of an approval that a step of a run awaits; `reasons` go behind those of others. Example:
    `policy` adds who must approve, and who has."""
    barred: Callable[[AskedOf, Viewer], str] | None = None
    """Why a person may not approve what a card asks; empty: they may, as far as it knows. Example: `policy`."""
    ways: Callable[[AskedOf, Viewer], Iterable[Way]] | None = None
    """What a person may do beside approving and denying. Example: `policy` lets them withdraw what they decided."""
    proposals: Mapping[str, Proposal] = field(default_factory=dict)
    """By its kind, what it proposes about steps (`StepState.proposal`), in words. Example: `budget`."""
    delegated: tuple[str, ...] = ()
    """Tools whose steps are no calls themselves: listed are those of the workflow that they began."""


class ViewSet:
    """What all features of a process add, each asked at the seams that it fills, in the order given.

    It is no state of a run, and takes no part in comparing and copying runs.
    """

    def __init__(self, views: Sequence[InViews] = ()) -> None:
        self._fields = [each.fields for each in views if each.fields]
        self._rows = [each.rows for each in views if each.rows]
        self._details = [each.details for each in views if each.details]
        self._standing = [each.standing for each in views if each.standing]
        self._member = [each.member for each in views if each.member]
        self._below = [each.below for each in views if each.below]
        self._card = [each.card for each in views if each.card]
        self._barred = [each.barred for each in views if each.barred]
        self._ways = [each.ways for each in views if each.ways]
        self._event = [each.event for each in views if each.event]
        self.proposals = {kind: proposal for each in views for kind, proposal in each.proposals.items()}
        self.delegated = frozenset(tool for each in views for tool in each.delegated)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ViewSet)

    def __hash__(self) -> int:
        return 0

    def __deepcopy__(self, memo: object) -> ViewSet:
        return self

    def fields(self, plan_id: str, step: Step, state: StepState) -> dict[str, Any]:
        """See `InViews.fields`."""
        found: dict[str, Any] = {}
        for seam in self._fields:
            found |= seam(plan_id, step, state)
        return found

    def rows(self, plan_id: str, step: Step, state: StepState) -> list[str]:
        """See `InViews.rows`."""
        return [row for seam in self._rows for row in seam(plan_id, step, state)]

    def details(self, plan_id: str, step: Step, state: StepState) -> list[str]:
        """See `InViews.details`."""
        return [row for seam in self._details for row in seam(plan_id, step, state)]

    def standing(self, plan_id: str, step: Step, state: StepState) -> list[str]:
        """See `InViews.standing`."""
        return [text for seam in self._standing if (text := seam(plan_id, step, state))]

    def below(self, plan_id: str, step: Step, state: StepState) -> list[Below]:
        """See `InViews.below`."""
        return [found for seam in self._below if (found := seam(plan_id, step, state)) is not None]

    def card(self, run: Parted, step: Step, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a card with those of features: see `InViews.card`."""
        found = dict(fields)
        for seam in self._card:
            added = seam(run, step)
            found |= {**added, "reasons": [*found["reasons"], *added.get("reasons", ())]}
        return found

    def barred(self, card: AskedOf, viewer: Viewer) -> str:
        """See `InViews.barred`: what each says that says something."""
        return "; ".join(filter(None, (seam(card, viewer) for seam in self._barred)))

    def ways(self, card: AskedOf, viewer: Viewer) -> list[Way]:
        """See `InViews.ways`."""
        return [way for seam in self._ways for way in seam(card, viewer)]

    def event(self, plan_id: str, step: Step, state: StepState) -> str | None:
        """See `InViews.event`: what the first of them says."""
        said = (seam(plan_id, step, state) for seam in self._event)
        return next((each for each in said if each is not None), None)

    def member(self, plan_id: str, step: Step, state: StepState, call: int) -> Member | None:
        """See `InViews.member`: what the first of them says."""
        said = (seam(plan_id, step, state, call) for seam in self._member)
        return next((each for each in said if each is not None), None)


NO_VIEWS = ViewSet()
"""The core alone."""
