"""The codec of payloads: encrypts what goes to the Temporal server, and decrypts what comes from there.

Whole payloads are encrypted, their metadata included; of a payload the server sees its length, and the id of its key.
Payloads that are not encrypted pass through, so that plans begun before there were keys continue; PLANS_PLAIN=refuse
refuses them. Without keys nothing is encrypted, and an encrypted payload says which key it needs.

A payload is not bound to its plan, since the SDK hands payloads from plan to child and to the next run; signatures of
decisions name plan and run. Nothing is compressed before: the length would tell what a text shares with one from
outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload

from plansurvive.features.keys.cipher import decrypted, encrypted
from plansurvive.features.keys.live import LiveRing
from plansurvive.runtime.conversion.payloads import SparingCodec
from plansurvive.runtime.errors import KeyMissing, PlainRefused, Unauthentic

ENCRYPTED = b"plans/encrypted"
"""Encoding of an encrypted payload. Not the usual `binary/encrypted`: other programs mean theirs by that."""
SEALED = b"plans/sealed"
"""Encoding of a payload that is stored encrypted; equal contents look equal."""
KEY_ID = "encryption-key-id"


class Codec(SparingCodec):
    """Encrypts payloads with a key ring; with None, only refuses what is encrypted."""

    def __init__(self, ring: LiveRing | None = None, *, plain: bool = True) -> None:
        """`plain`: read payloads that are not encrypted."""
        self.ring, self.plain, self.mark = ring, plain, ENCRYPTED if ring is None else None

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """The payloads, each encrypted on its own."""
        if self.ring is None:
            return list(payloads)
        await self._refresh()
        return [wrapped(self.ring, ENCRYPTED, payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """The payloads as they were. Raises KeyMissing, Unauthentic, PlainRefused."""
        if not any(is_encrypted(payload) for payload in payloads):
            if self.plain or self.ring is None:
                return list(payloads)
        else:
            await self._refresh()
        return [self._decoded(payload) for payload in payloads]

    def _decoded(self, payload: Payload) -> Payload:
        if is_encrypted(payload):
            return unwrapped(self.ring, ENCRYPTED, payload)
        if not self.plain and self.ring is not None:
            raise PlainRefused("it is not encrypted, and PLANS_PLAIN=refuse accepts encrypted payloads only")
        return payload

    async def _refresh(self) -> None:
        if self.ring is not None and not self.ring.is_fresh:
            await asyncio.to_thread(self.ring.refresh)


def is_encrypted(payload: Payload) -> bool:
    """Whether the codec made this payload."""
    return payload.metadata.get("encoding") == ENCRYPTED


def wrapped(ring: LiveRing, encoding: bytes, payload: Payload) -> Payload:
    """The payload inside an encrypted one. Sealed ones are the same for the same content."""
    key = ring.current()
    data = encrypted(key, encoding, payload.SerializeToString(deterministic=True), same=encoding == SEALED)
    return Payload(metadata={"encoding": encoding, KEY_ID: key.id.encode()}, data=data)


def unwrapped(ring: LiveRing | None, encoding: bytes, payload: Payload) -> Payload:
    """The payload inside. Raises KeyMissing or Unauthentic."""
    name = payload.metadata.get(KEY_ID, b"").decode("ascii", "replace")
    if ring is None:
        raise KeyMissing.of(name, "", 0)
    try:
        return Payload.FromString(decrypted(ring.key(name), encoding, payload.data))
    except DecodeError as error:
        raise Unauthentic(f"what was encrypted with the key {name} is not a payload") from error
