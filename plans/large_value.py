"""References to values in external storage: a step's value that is too large for history, also inside others."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from plansurvive.plans.model import Value


class LargeValue(Value):
    """A reference to a value in external storage, content-addressed by the hash of its JSON text (UTF-8)."""

    sha256: str = Field(description="Hex digest of the JSON text, which holds the digests of `streams`.")
    claim: dict[str, str] = Field(
        default_factory=dict, description="The storage driver's claim: what it needs to retrieve the value."
    )
    bytes: int = Field(description="Length of the JSON text, in bytes, with the text of `streams`.")
    preview: str = Field(description="The first 200 characters of the value, for people.")
    streams: dict[str, int] = Field(
        default_factory=dict,
        description="Fields of the value that are texts stored in chunks (`runtime.value_store.Stream`), with their"
        " lengths in bytes.",
    )
    known: dict[str, Any] = Field(
        default_factory=dict, description="Of a value with streams, the fields short enough for a condition."
    )

    @model_serializer(mode="wrap")
    def _compact(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit what a value without streams does not have."""
        return {name: each for name, each in handler(self).items() if each or name not in ("streams", "known")}


class InnerValue(Value):
    """A large value inside another one."""

    place: list[str | int] = Field(description="Where it belongs: keys and indexes, outermost first.")
    large: LargeValue
    spread: int = Field(
        default=0, ge=0, description="It holds a list of so many `items`, which belong there and after it, one by one."
    )


class Composed(Value):
    """The value of a block or loop, with null in the place of each large value inside it."""

    value: Any
    parts: list[InnerValue]

    @property
    def bytes(self) -> int:
        """Length of the large values in it, in bytes."""
        return sum(part.large.bytes for part in self.parts)
