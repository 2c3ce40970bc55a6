"""What plans, calls and their results keep of the tools of servers."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from plansurvive.plans.model import ToolSpec
from plansurvive.plans.model.parts import Part


class KnownTools(Part):
    """Of the options of a run: the tools that it was checked with before its start."""

    feature: ClassVar[str] = "tool_servers"

    definitions: dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=64)]] = Field(
        default_factory=dict, max_length=2_000, description="Definitions of the tools of servers, by name."
    )


class ChangedTool(Part):
    """What a failed call left: nothing was called, as the tool is not what the call was decided on."""

    feature: ClassVar[str] = "tool_servers"

    tool: ToolSpec | None = Field(default=None, description="What it is now.")
