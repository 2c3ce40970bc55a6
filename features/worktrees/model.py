"""The parts of runs, calls and results that say in which worktree a step works, and what it has left there."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.model.parts import Part

MERGE = "merge_worktrees"
"""The tool that takes over what is in worktrees, whose call says whose these are."""


class WorktreeChoice(Part):
    """Part of the options of a run: whose worktrees its steps have, and in which one all of it works."""

    feature: ClassVar[str] = "worktrees"

    origin: str = Field(
        default="", description="The plan that was started first, if this one continues it: it has the same worktrees."
    )
    plan: str = Field(default="", description="Of a child plan or agent in a worktree: the plan that it belongs to.")
    tree: str = Field(default="", description="The step or block that it belongs to; empty: the run is in none.")
    step: str = Field(default="", description="The step that started the run: its commit has what the run changes.")
    title: str = Field(default="", max_length=200, description="The description of that step.")


class WorktreeOrder(Part):
    """Part of a call: the worktree that it is made in."""

    feature: ClassVar[str] = "worktrees"

    plan: str = Field(default="", description="The plan that the worktree belongs to.")
    tree: str = Field(default="", description="The step or block that it belongs to.")
    step: str = Field(default="", description="The step whose commit has what the call changes.")
    title: str = Field(default="", max_length=200, description="The description of that step, in one line.")
    stamps: dict[str, Stamp] = Field(default_factory=dict, description="Of the call's files in the worktree.")


class WorktreeNote(Part):
    """Part of what a call returns, and of its step's result: the state of the branch that it has left."""

    feature: ClassVar[str] = "worktrees"

    branch: str = Field(default="", max_length=400)
    commit: str = Field(default="", max_length=64, description="The tip of the branch.")
    base: str = Field(default="", max_length=64, description="The commit that the branch began from.")
