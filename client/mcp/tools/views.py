"""What the tools about one plan answer: where it stands, bounded, and what awaits a decision."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from client import runs
from client.mcp.where import Where, where
from client.pending import Pending
from client.requests.connected import Connected
from plans.model import Value
from plans.run import ENDED, PlanStatus, Status
from plans.views.models import BriefStep, BriefView

MAX_STEPS = 100
"""Steps that are listed at once."""


class StepShown(Value):
    """One step."""

    id: str
    tool: str
    description: str = ""
    status: Status
    awaiting: str | None = Field(
        default=None, description="approval, answer: of a person; event; recovery: of the LLM."
    )


class Awaited(Value):
    """A decision that a person has to make."""

    plan_id: str = Field(description="The plan that asks; a child plan has an id of its own.")
    step_id: str
    kind: str = Field(description="approval, recovery, budget, answer.")
    tool: str
    description: str = ""
    args: dict[str, Any] = Field(default_factory=dict)
    reasons: list[str] = Field(default_factory=list, description="Why it asks.")
    digest: str = Field(default="", description="Digest of the whole call that is decided about.")
    version: int = 1
    since: datetime | None = None
    deadline: datetime | None = None
    more: int = Field(default=0, description="Further decisions about other items of the same step.")

    @classmethod
    def of(cls, item: Pending) -> Awaited:
        """A pending decision."""
        return cls.model_validate(item.model_dump(include=set(cls.model_fields)))


class Shown(Value):
    """A plan: where it stands."""

    plan_id: str
    title: str = ""
    status: PlanStatus
    has_ended: bool
    version: int = 1
    seq: int = Field(default=0, description="Number of its last event.")
    counts: dict[str, int] = Field(default_factory=dict, description="Steps by status; `total`.")
    steps: list[StepShown] = Field(default_factory=list)
    next: int | None = Field(default=None, description="`from_step` for the steps after these.")
    awaits: list[str] = Field(
        default_factory=list, description="Steps that await a person: plan_pending has the calls."
    )
    decide: Where = Field(description="Where a person sees the plan, and decides.")


async def shown(here: Connected, plan: str, from_step: int = 0) -> tuple[Shown, str]:
    """Where a plan stands, and the same as text. Raises as `runs.show`."""
    view = await runs.brief(here.client, plan)
    found = _of(view, where(here, view.id or plan), from_step)
    return found, _text(found)


def _of(view: BriefView, place: Where, from_step: int) -> Shown:
    listed = view.steps[from_step : from_step + MAX_STEPS]
    end = from_step + len(listed)
    return Shown(
        plan_id=view.id, title=view.title[:1_000], status=view.status, has_ended=view.status in ENDED,
        version=view.version, seq=view.seq, counts=view.counts, steps=[_step(each) for each in listed],
        next=end if end < len(view.steps) else None,
        awaits=list(dict.fromkeys(each.step_id for each in view.pending))[:MAX_STEPS], decide=place,
    )  # fmt: skip


def _step(step: BriefStep) -> StepShown:
    return StepShown(
        id=step.id, tool=step.tool, description=step.description[:300], status=step.status, awaiting=step.awaiting
    )


def _text(found: Shown) -> str:
    counted = ", ".join(f"{number} {name}" for name, number in found.counts.items() if name != "total" and number)
    rows = [f"plan {found.plan_id} · {found.status} · {counted or 'no steps yet'}"]
    rows += [f"{each.status:<10} {each.id} ({each.tool})" for each in found.steps]
    rows += [f"… more steps: from_step {found.next}"] if found.next else []
    if found.awaits or found.status is PlanStatus.REVIEW:
        what = f"Awaiting a person: {', '.join(found.awaits[:10])}." if found.awaits else "The plan is in review."
        rows.append(f"{what} {found.decide.text}")
    return "\n".join(rows)
