"""When a step's result may be that of an earlier run, as a plan says it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from plansurvive.plans.model.values import Value

Pattern = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]


class Cache(Value):
    """When a step's result may be that of an earlier run."""

    reads: list[Pattern] | None = Field(
        default=None,
        max_length=100,
        description="Patterns of the files it reads, for a tool that does not report them; an empty list: none.",
    )
    outside: bool = Field(
        default=False,
        strict=True,
        description="True: although it reads or changes more than files of the workspace.",
    )
