"""What is inside the encrypted payloads of a message of the server: of an event, a description, a payload."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload

from plansurvive.features.keys.codec import ENCRYPTED, SEALED, unwrapped
from plansurvive.features.keys.live import LiveRing


def plain_texts(message: Message, ring: LiveRing | None) -> Iterator[bytes]:
    """The decrypted bytes of each encrypted payload, wherever it is. Raises KeyMissing, Unauthentic."""
    waiting: list[Message] = [message]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Payload):
            yield from _inside(each, ring)
            continue
        for field, value in each.ListFields():
            if field.message_type is None:
                continue
            if field.message_type.GetOptions().map_entry:
                waiting += [item for item in value.values() if isinstance(item, Message)]
            else:
                waiting += value if field.is_repeated else [value]


def _inside(payload: Payload, ring: LiveRing | None) -> Iterator[bytes]:
    encoding = payload.metadata.get("encoding", b"")
    if encoding in (ENCRYPTED, SEALED):
        inner = unwrapped(ring, encoding, payload)
        yield inner.data
        yield from _inside(inner, ring)
