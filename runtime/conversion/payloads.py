"""The payload converter: pydantic values as JSON, and an `Undecodable` in place of a message that is no value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any, Self

from pydantic_core import to_json
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, EncodingPayloadConverter, PayloadCodec, SerializationContext

from plansurvive.plans.errors import Undecodable

UNDECODABLE = b"plans/undecodable"
"""Encoding of the payload that takes the place of one that cannot be retrieved or decrypted."""
strict: ContextVar[bool] = ContextVar("strict", default=False)
"""Whether what cannot be decoded raises: for clients and activities."""


def json_payload(data: bytes) -> Payload:
    """JSON as a payload. Metadata given to the constructor would be merged in Python."""
    payload = Payload(data=data)
    payload.metadata["encoding"] = b"json/plain"
    return payload


class SparingCodec(PayloadCodec):
    """A codec that may change nothing but payloads with a mark, when it decodes them."""

    mark: bytes | None = None
    """What is in the bytes of each payload that it changes; None: it changes others, or encodes them."""


class OnePayloadConverter(PydanticPayloadConverter):
    """The SDK's pydantic payload converter, sharing one set of type adapters per process.

    With external storage the SDK creates a converter per activity and per client call, and each would rebuild the type
    adapters. They are its only state.
    """

    def __init__(self) -> None:
        self.converters = _converters()  # the SDK makes one of these several times in each workflow task

    def with_context(self, context: SerializationContext) -> Self:  # noqa: ARG002
        """None of its converters looks at the context."""
        return self

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """Convert values; texts and what is JSON already without asking one converter after the other."""
        return [self._payload(value) for value in values]

    def _payload(self, value: Any) -> Payload:
        if isinstance(value, RawValue):
            return value.payload
        return json_payload(to_json(value)) if type(value) is str else super().to_payloads([value])[0]

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Convert payloads to values. Without types, which is how messages arrive, what cannot be converted becomes
        an `Undecodable`; with types, and for clients and activities, it raises."""
        if type_hints or strict.get():
            return super().from_payloads(payloads, type_hints)
        return [self._value(payload) for payload in payloads]

    def _value(self, payload: Payload) -> Any:
        if payload.metadata.get("encoding") == UNDECODABLE:
            return Undecodable(_LOST, lost=True)
        try:
            return super().from_payloads([payload])[0]
        except MemoryError:
            raise
        except Exception as error:  # decoding alone: whatever a parser raises for the bytes of a payload
            return Undecodable(f"the message cannot be decoded: {_reason(error)}; send it as JSON (json/plain)")


_LOST = (
    "the message refers to content that is not in the storage of the plan's workers, or to none at all; send it from a"
    " client with the same state directory (PLANS_STATE_DIR) or bucket (PLANS_STORAGE)"
)


def marks_of_decoded(converter: DataConverter) -> Sequence[bytes] | None:
    """What is in the bytes of each payload that the converter's codec changes; None: it may change any."""
    codec = converter.payload_codec
    if converter.payload_converter_class is not OnePayloadConverter:
        return None
    if codec is None:
        return ()
    return (codec.mark,) if isinstance(codec, SparingCodec) and codec.mark is not None else None


def _reason(error: Exception) -> str:
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {cause}"[:300]


@cache
def _converters() -> Mapping[bytes, EncodingPayloadConverter]:
    return PydanticPayloadConverter().converters
