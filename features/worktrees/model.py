"""The parts of runs, calls and results that say in which worktree a step works, and what it has left there."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Part

MERGE = "merge_worktrees"
"""The tool that takes over what is in worktrees, whose call says whose these are."""


REVERT = "revert_merge"
"""The tool that undoes that."""


OTHER = "other"
"""What is chosen of a place in conflict whose lines are entered; and what the field for them is called."""


class ConflictPlace(Value):
    """A place in a file that is in conflict, or the file as a whole."""

    path: str
    key: str = Field(description="The objects of its three versions: base, ours, theirs.")
    index: int = Field(default=-1, description="Which place, counted from 0; -1: all of it.")


class Choice(Value):
    """What a person has chosen about a place."""

    place: ConflictPlace
    take: str = Field(max_length=20, description="ours, theirs, both, other.")
    text: str = Field(default="", description="With other: the lines.")


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
    chosen: list[Choice] = Field(default_factory=list, description="Of a merge: what people chose about conflicts.")


class WorktreeNote(Part):
    """Part of what a call returns, and of its step's result: the state of the branch that it has left."""

    feature: ClassVar[str] = "worktrees"

    branch: str = Field(default="", max_length=400)
    commit: str = Field(default="", max_length=64, description="The tip of the branch.")
    base: str = Field(default="", max_length=64, description="The commit that the branch began from.")


class WorktreeConflict(Part):
    """Part of what a merge leaves that fails, and of its step: what is asked about, and what was chosen before."""

    feature: ClassVar[str] = "worktrees"

    what: str = Field(default="", max_length=2_000, description="What is merged, in words.")
    question: dict[str, Any] = Field(
        default_factory=dict, description="As the arguments of `ask`; empty: nothing is asked."
    )
    places: dict[str, ConflictPlace] = Field(
        default_factory=dict, max_length=100, description="By the field of the answer."
    )
    chosen: list[Choice] = Field(default_factory=list, description="Of the step: what people have chosen.")
