"""A template: a plan that was saved under a name, at one of its versions."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError

from plansurvive.plans.model.rules import Input
from plansurvive.plans.model.values import Value

SHORT = 12
"""Characters of a hash that people are shown."""


class Template(Value):
    """One version of a template. `data` is the content of its plan file, parsed but not validated."""

    name: str
    hash: str = Field(description="SHA-256 of the text in hex; line ends count as LF.")
    where: Literal["project", "user"] = Field(description="Whose it is: in `.plans/` of a workspace, or the user's.")
    path: str = Field(description="The file that holds this version.")
    description: str = Field(default="", description="What it is for, in a sentence.")
    text: str
    data: Any = None

    @property
    def label(self) -> str:
        """`NAME@HASH`, which names exactly this version."""
        return f"{self.name}@{self.hash[:SHORT]}"

    @property
    def inputs(self) -> dict[str, Input]:
        """Its typed inputs by name; malformed ones, which no plan can have, are left out."""
        given = self.data.get("inputs") if isinstance(self.data, dict) else None
        found: dict[str, Input] = {}
        for name, each in given.items() if isinstance(given, dict) else ():
            try:
                found[name] = Input.model_validate(each)
            except ValidationError:
                continue
        return found
