"""What a run knows of the lock on its workspace, and what plans and the keeper of a lock say to each other."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Part

NAME = 1_000
"""Characters of a workflow id."""


class LockState(Value):
    """The lock that a run has asked for."""

    key: str = Field(description="Id of the workflow that holds the lock.")
    token: str = Field(description="Random; only who knows it grants or releases.")
    since: datetime = Field(description="When it was asked for.")
    held: datetime | None = Field(default=None, description="Since when the run holds it.")
    holder: str = Field(default="", description="Workflow that holds it meanwhile.")
    ahead: int = Field(default=0, description="Plans that get it before.")


class LockRequest(Value):
    """A plan asks for the lock on a workspace: the input of `lock_workspace`, and the signal `ask` that it sends."""

    key: str = Field(min_length=1, max_length=200)
    workflow_id: str = Field(min_length=1, max_length=NAME)
    run_id: str = Field(max_length=100, description="First run of the workflow: an id may be used again.")
    token: str = Field(min_length=1, max_length=100)


class LockRelease(Value):
    """A plan needs the lock no more: the signal `release`."""

    workflow_id: str = Field(min_length=1, max_length=NAME)
    token: str = Field(min_length=1, max_length=100)


class LockNews(Value):
    """What the keeper of a lock tells a plan: the signal `workspace_lock`."""

    token: str = Field(max_length=100)
    held: bool = Field(strict=True)
    holder: str = Field(default="", max_length=NAME)
    ahead: int = Field(default=0, ge=0, le=1_000_000)


class Lock(Part):
    """Part of a run: the lock that it has asked for, if it needs one."""

    feature: ClassVar[str] = "locks"

    state: LockState | None = None


class Covered(Part):
    """Part of the options of a child plan or agent."""

    feature: ClassVar[str] = "locks"

    is_covered: bool = Field(default=False, description="It works under the lock of the plan above.")


class LocksAll(Part):
    """Part of a worker's facts."""

    feature: ClassVar[str] = "locks"

    every_plan: bool = Field(default=False, description="PLANS_WORKSPACE_LOCK=all: every plan locks its workspace.")
