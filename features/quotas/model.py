"""What a run knows of its places, and what plans and the keeper of a label's places say to each other."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Part

NAME = 1_000
"""Characters of a workflow id."""
LABEL = 300
"""Characters of `name=value`."""
MAX_PLANS = 10_000
"""The largest quota."""


class Quotas(Part):
    """Part of a worker's facts: how many plans at a time a label may have."""

    feature: ClassVar[str] = "quotas"

    labels: dict[str, int] = Field(default_factory=dict, description="By `name`, each value apart, or `name=value`.")


class QuotaPlace(Value):
    """A place that a run has asked for."""

    label: str = Field(description="`name=value`.")
    most: int = Field(description="How many plans may have one at a time.")
    token: str = Field(description="Random; only who knows it grants or releases.")
    since: datetime = Field(description="When it was asked for.")
    held: datetime | None = Field(default=None, description="Since when the run has it.")


class QuotaPlaces(Part):
    """Part of a run: the places that it has asked for, one after the other, in the order of their labels."""

    feature: ClassVar[str] = "quotas"

    asked: list[QuotaPlace] = Field(default_factory=list)


class Covered(Part):
    """Part of the options of a child plan or agent."""

    feature: ClassVar[str] = "quotas"

    is_covered: bool = Field(default=False, description="It runs in the places of the plan above.")


class QuotaRequest(Value):
    """A plan asks for a place: the input of `ask_for_place`, and the signal `ask` that it sends."""

    key: str = Field(min_length=1, max_length=200, description="Id of the workflow that keeps the places.")
    label: str = Field(min_length=1, max_length=LABEL)
    most: int = Field(ge=1, le=MAX_PLANS)
    workflow_id: str = Field(min_length=1, max_length=NAME)
    run_id: str = Field(max_length=100, description="First run of the workflow: an id may be used again.")
    token: str = Field(min_length=1, max_length=100)


class QuotaRelease(Value):
    """A plan needs its place no more: the signal `release`."""

    workflow_id: str = Field(min_length=1, max_length=NAME)
    token: str = Field(min_length=1, max_length=100)


class QuotaGranted(Value):
    """The keeper tells a plan that it has a place: the signal `quota_place`."""

    token: str = Field(max_length=100)


class QuotaRow(Value):
    """The places of one label, for lists: the query `places`."""

    label: str
    most: int
    running: list[str] = Field(default_factory=list, description="Workflows that have a place.")
    waiting: list[str] = Field(default_factory=list, description="Workflows that wait for one, in this order.")
