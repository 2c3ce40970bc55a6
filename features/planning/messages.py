"""The message that has the LLM revise a plan: the update `regenerate`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from plansurvive.plans.editing.edits import Via
from plansurvive.plans.model import Value
from plansurvive.plans.signature import Signature


class Regenerate(Value):
    """Ask the LLM to revise the plan."""

    EXAMPLE: ClassVar[str] = '{"feedback": "..."}'

    feedback: str = Field(min_length=1, max_length=10_000)
    expect_version: int | None = Field(default=None, strict=True)
    by: str = Field(default="", max_length=200)
    via: Via = Field(default="", description="Where the author spoke.")
    verified: bool = Field(default=False, strict=True, description="The name is verified; counts only if signed.")
    signature: Signature | None = Field(default=None, description="Where the worker asks for signed decisions.")
