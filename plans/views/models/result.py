"""The result of a step."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Value
from plansurvive.plans.model.caching import CacheNote


class ResultView(Value):
    """The result of a step. The brief view and events contain only some of the fields."""

    ok: bool
    value: Any = Field(default=None, description="The value, or its beginning as text if `cut` says so.")
    cut: bool = Field(default=False, description="`value` is not the value, but the beginning of its text.")
    length: int | None = Field(default=None, description="Of a cut value: characters of its JSON, bytes if `large`.")
    large: LargeValue | None = Field(default=None, description="Reference to a value too large for history.")
    error: str | None = None
    code: str | None = Field(default=None, description="Stable code of the error.")
    duration: float = Field(default=0.0, description="Duration in milliseconds.")
    timestamp: datetime | None = Field(default=None, description="When the step ended.")
    attempt: int = Field(default=1, description="Number of the attempt; only tool errors count.")
    cache: CacheNote | None = Field(default=None, description="The earlier run it is from, or why the tool was called.")
