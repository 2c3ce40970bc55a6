"""The result of a step."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Value


class ResultView(Value):
    """The result of a step. The brief view and events contain only some of the fields.

    What features keep with a result stands beside its fields, under their names; read, it is in `parts`.
    """

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
    taken_from: str | None = Field(default=None, description="PLAN/STEP whose result it is: the tool was not called.")
    parts: dict[str, Any] = Field(default_factory=dict, description="What features keep, by the name of the feature.")

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: Any) -> Any:
        """Take an object that is no field of the core as the part of a feature."""
        if not isinstance(given, dict) or given.keys() <= _NAMES:
            return given
        own = {name: each for name, each in given.items() if name in _NAMES}
        parts = {name: each for name, each in given.items() if name not in _NAMES and isinstance(each, dict)}
        return own | {"parts": own.get("parts", {}) | parts}

    @model_serializer(mode="wrap")
    def _spread(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        view: dict[str, Any] = handler(self)
        parts: dict[str, Any] = view.pop("parts", {})
        return view | parts


_NAMES = {*ResultView.model_fields, *(each.alias for each in ResultView.model_fields.values() if each.alias)}
