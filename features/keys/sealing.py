"""Encrypts with the key ring of the settings: payloads, what storage keeps, and files of the state directory.

Something stored under the hash of its content gets a name that tells nothing without the key: an HMAC of that hash.
What was written before there were keys, or with older ones, is still found and read.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from functools import cache

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload

from plansurvive.features.keys.codec import ENCRYPTED, SEALED, Codec, unwrapped, wrapped
from plansurvive.features.keys.live import LiveRing
from plansurvive.features.keys.ring import BadRing, Key
from plansurvive.features.keys.settings import KeySettings
from plansurvive.features.keys.source import source_of
from plansurvive.runtime.errors import KeyMissing
from plansurvive.runtime.sealing import Sealing
from plansurvive.runtime.settings import SettingError, Settings


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


SETTING = "PLANS_KEYS"
_MARK = "~"
"""Begins an encrypted text; JSON never begins with it."""
_NAME, _CONTENT, _TEXT = b"plans: name of a content, 1\0", b"content", b"text"


class Encrypting(Sealing):
    """Encrypts with a key ring; with None, everything stays as it is, and what is encrypted says which key it needs."""

    codec: Codec

    def __init__(self, ring: LiveRing | None = None, *, plain: bool = True) -> None:
        """`plain`: read payloads of the server that are not encrypted."""
        self.ring, self.encrypts, self.codec = ring, ring is not None, Codec(ring, plain=plain)

    def sealed(self, payload: Payload) -> Payload:
        """Encrypted, unless the codec did already. Called in threads, as a command that prints the keys may run."""
        if self.ring is None or payload.metadata.get("encoding") in (ENCRYPTED, SEALED):
            return payload
        return wrapped(self.ring, SEALED, payload)

    def opened(self, payload: Payload) -> Payload:
        """The payload as it was given. Raises KeyMissing or Unauthentic."""
        return unwrapped(self.ring, SEALED, payload) if payload.metadata.get("encoding") == SEALED else payload

    def file_of(self, digest: str, content: bytes) -> tuple[str, bytes]:
        """The name and the bytes under which a content is stored, which has this hash."""
        if self.ring is None:
            return digest, content
        from plansurvive.features.keys.cipher import encrypted  # lazily: `plan check` does without

        key = self.ring.current()
        return _name(key, digest), encrypted(key, _CONTENT, content, same=True)

    def names(self, digest: str) -> Iterator[tuple[Key | None, str]]:
        """The names under which a content may be stored, each with its key; None: as it is. The newest first."""
        for key in reversed(self.ring.refresh().keys if self.ring else ()):
            yield key, _name(key, digest)
        yield None, digest

    def content(self, key: Key | None, data: bytes) -> bytes:
        """The content of a file that was found under one of its names. Raises Unauthentic."""
        if key is None:
            return data
        from plansurvive.features.keys.cipher import decrypted  # lazily, as above

        return decrypted(key, _CONTENT, data)

    def text(self, plain: str) -> str:
        """A text as it is stored."""
        if self.ring is None:
            return plain
        from plansurvive.features.keys.cipher import encrypted  # lazily, as above

        key = self.ring.current()
        return f"{_MARK}{key.id} {base64.b64encode(encrypted(key, _TEXT, plain.encode())).decode()}"

    def plain(self, text: str) -> str:
        """The text that was stored. Raises KeyMissing, Unauthentic."""
        if not text.startswith(_MARK):
            return text
        name, _, data = text.removeprefix(_MARK).partition(" ")
        if self.ring is None:
            raise KeyMissing.of(name, "", 0)
        from plansurvive.features.keys.cipher import decrypted  # lazily, as above

        return decrypted(self.ring.key(name), _TEXT, base64.b64decode(data)).decode()

    def plain_texts(self, message: Message) -> Iterator[bytes]:
        """The decrypted bytes of each encrypted payload, wherever it is. Raises KeyMissing, Unauthentic."""
        return plain_texts(message, self.ring)


def sealing(settings: Settings) -> Encrypting:
    """What the settings say. Raises SettingError."""
    return Encrypting(ring_of(settings), plain=settings.of(KeySettings).plain == "read")


def ring_of(settings: Settings) -> LiveRing | None:
    """The key ring that the settings name, one per process; None without PLANS_KEYS. Raises SettingError."""
    named = settings.of(KeySettings).keys
    return _ring(named) if named else None


@cache
def _ring(text: str) -> LiveRing:
    try:
        return LiveRing(source_of(text))
    except BadRing as error:
        raise SettingError({SETTING: error.message}) from None


def _name(key: Key, digest: str) -> str:
    return hmac.digest(key.secret, _NAME + digest.encode(), hashlib.sha256).hex()[:32]
