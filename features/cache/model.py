"""The parts of calls whose result may be that of an earlier run: what goes along, and what comes back."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import AwareDatetime, Field, SerializerFunctionWrapHandler, model_serializer

from plansurvive.plans.model import Value
from plansurvive.plans.model.caching import Pattern
from plansurvive.plans.model.parts import Part

MAX_DIFFERENCES = 10
"""Differences reported for a step that ran; the rest are only counted."""


class CacheChoice(Part):
    """Part of the options of a run: what whoever started it says of the results of earlier runs."""

    feature: ClassVar[str] = "cache"

    cache: Literal["", "on", "fresh"] = Field(
        default="", description="on: results of earlier runs are taken; fresh: they are not, and its own are kept."
    )
    since: str = Field(default="", max_length=200, description="Id of the only plan whose results may be taken.")


class CacheOrder(Part):
    """Part of a call: what its plan asks of the worker."""

    feature: ClassVar[str] = "cache"

    asked: bool = Field(default=False, description="To take the result of an earlier run, and to keep its own.")
    title: str = Field(default="", max_length=1_000, description="The plan's title, by which runs of it are compared.")
    reads: list[Pattern] | None = Field(default=None, description="As the step says it.")
    outside: bool = Field(default=False, description="As the step says it.")
    since: str = Field(default="", max_length=200, description="Id of the only plan whose results may be taken.")
    fresh: bool = Field(default=False, description="Nothing is taken; what the call gives is kept.")


class Difference(Value):
    """One thing in which a call differs from that of the earlier run."""

    what: Literal["argument", "file", "tool", "environment", "reads"]
    name: str = Field(default="", max_length=4_200, description="The argument, or the file relative to the workspace.")
    before: str = Field(default="", max_length=100, description="A file's hash in the earlier run; empty: no file.")
    after: str = Field(default="", max_length=100, description="The hash that it has; empty: no file.")


class CacheNote(Part):
    """Part of what a call returns, and of its step's result: where it comes from, or why the tool was called."""

    feature: ClassVar[str] = "cache"

    taken_from: str = Field(default="", max_length=400, description="PLAN/STEP whose result it is; empty: it ran.")
    made: AwareDatetime | None = Field(default=None, description="When that step ended.")
    why: str = Field(default="", max_length=40, description="A stable word: why the tool was called.")
    compared: str = Field(default="", max_length=400, description="PLAN/STEP that it was compared with.")
    differences: list[Difference] = Field(default_factory=list, max_length=MAX_DIFFERENCES)
    more: int = Field(default=0, ge=0, description="Number of further differences.")
    kept: bool = Field(default=False, description="A later run may take the result.")
    unkept: str = Field(default="", max_length=300, description="Why a later run may not take it.")

    @model_serializer(mode="wrap")
    def _compact(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit what it does not say: a run may have a note for each of thousands of steps."""
        return {name: each for name, each in handler(self).items() if each}
