"""What the models of a plan share: the frozen base class, ids, task queues, limits."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

MAX_STEPS = 20_000
"""Maximum number of steps in a plan (FAULTS, rule 6)."""
MAX_PARALLEL = 100
"""Maximum number of steps of a plan in flight; with more buffered completions, workflow tasks fail (TEMPORAL.md 2)."""
DEFAULT_PARALLEL = 64
"""Steps in flight when neither the plan nor the client sets `maxParallel` (TEMPORAL.md 2)."""

StepId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$")]
"""1 to 128 letters, digits, `_` or `-`, so that a reference can name the step without quoting."""
PlanId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}$")]
"""With colons, because Temporal ends the ids of a schedule's runs in a time: `nightly-2027-03-28T05:00:00Z`."""
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


def _not_reserved(queue: str) -> str:
    if queue.startswith("/_sys/"):
        raise ValueError("a task queue cannot begin with /_sys/, which Temporal reserves")
    return queue


Queue = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_not_reserved)]
"""A task queue. With another name, the server refuses every activity, and the workflow task that starts it."""
Labels = dict[
    Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$")],
    Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")],
]
"""Labels by name, as of Kubernetes; a value is one line of text."""
Seconds = Annotated[float, Field(gt=0, le=31_536_000, strict=True)]


class Value(BaseModel):
    """A frozen value with camelCase JSON names; an unknown field is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True
    )
