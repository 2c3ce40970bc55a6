"""A notice: a sentence about a plan as a whole that every view shows, such as what it waits for before it starts."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from plansurvive.plans.model import Value


class Notice(Value):
    """One sentence about a plan, by whoever keeps it up to date: a feature, under its name in `Run.notices`."""

    text: str = Field(description="Without the plan as its subject: `waits for its workspace`.")
    since: datetime
    plan_id: str = Field(default="", description="The plan that it speaks of, for a link.")
    holds: bool = Field(default=False, description="No step of the plan starts meanwhile.")
