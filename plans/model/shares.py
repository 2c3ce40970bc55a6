"""How plans share the workers of a queue when more is due than they can run: priority, and fairness between owners."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from plansurvive.plans.model.values import Value

DEFAULT_PRIORITY = 3
Priority = Annotated[int, Field(ge=1, le=5, strict=True)]
"""1 is served first, 5 last; 3 if none is given (Temporal's task queue priority)."""


class Fairness(Value):
    """Whose share of the workers a plan uses: of a priority, each key gets its share, however much it queued."""

    key: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(
        description="An owner, team or customer. Readable on the server, also where payloads are encrypted."
    )
    weight: float = Field(
        default=1.0, ge=0.001, le=1_000, allow_inf_nan=False, description="Its share, relative to that of others."
    )
