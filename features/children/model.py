"""What a plan is told of its child plans when it is started, and what is read before one begins."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from plansurvive.plans.child_state import Hashes
from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Part


class KnownPlans(Part):
    """The plan files and templates that were there when a person started the plan: what they waive counts."""

    feature: ClassVar[str] = "children"

    sha256: Hashes = Field(default_factory=list, description="Hashes of their contents.")


class LoadRequest(Value):
    """Input of `load_plan`: a plan file of the workspace, or a template. Exactly one of the two is given."""

    workspace: str = Field(description="Absolute directory that the path is in, and whose templates count.")
    directory: DirectoryIdentity | None = Field(default=None, description="Which directory that is, of `plan_id`.")
    plan_id: str = ""
    file: str | None = None
    template: str | None = None


class LoadedPlan(Value):
    """Output of `load_plan`: the content of a plan file, parsed but not validated, as the run uses it from then on."""

    source: str = Field(description="What it was loaded from: the path, or NAME@HASH of a template.")
    sha256: str = Field(description="Hash of its content, in hex: of the bytes of a file, of the text of a template.")
    data: Any = Field(default=None, description="Its content as JSON data.")


class UndoRequest(Value):
    """Input of `load_undo`."""

    plan_id: Annotated[str, Field(max_length=200)] = Field(description="Id of the child plan that is to be undone.")


class LoadedUndo(Value):
    """Output of `load_undo`."""

    run: dict[str, Any] = Field(description="The child's Run, or that of the plan that undid it last.")
    undo_id: str = Field(description="Id of the plan that undoes what is left of it.")
