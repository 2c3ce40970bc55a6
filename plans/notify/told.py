"""What a run has handed over to be told, so that nothing is handed over twice or left out, also after continue-as-new.

A value of `Run`; the older a history, the emptier. Imports no other part of `plans`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Told(BaseModel):
    """What was handed over. Only the plan's workflow changes it."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)

    waiting: dict[str, str] = Field(
        default_factory=dict, description="Of each step that awaits a decision, which of its questions was."
    )
    budget: int = Field(default=0, description="Number of the last log entry about the budget that was.")
    ended: bool = Field(default=False, description="The end of the plan was.")
