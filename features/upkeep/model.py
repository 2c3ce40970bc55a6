"""What a schedule asks to be removed: the input of PruneWorkflow and of the activity `prune`."""

from __future__ import annotations

from pydantic import Field

from plansurvive.plans.model import Value


class PruneOrder(Value):
    """Ages in seconds."""

    older_than: float = Field(ge=3_600, le=10**9, description="Values that no plan refers to, of at least this age.")
    records: float | None = Field(
        default=None,
        ge=3_600,
        le=10**9,
        description="Records of plans that the server has no more, and logs.",
    )
