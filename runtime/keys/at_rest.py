"""Encrypting what is kept in files of the state directory: contents of files, results in the effect log.

Something stored under the hash of its content gets a name that tells nothing without the key: an HMAC of that hash.
What was written before there were keys, or with older ones, is still found and read.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator

from plansurvive.runtime.keys.errors import KeyMissing
from plansurvive.runtime.keys.live import LiveRing
from plansurvive.runtime.keys.ring import Key

_MARK = "~"
"""Begins an encrypted text; JSON never begins with it."""
_NAME, _CONTENT, _TEXT = b"plans: name of a content, 1\0", b"content", b"text"


class AtRest:
    """Encrypts with a key ring; with None, everything stays as it is."""

    def __init__(self, ring: LiveRing | None = None) -> None:
        self._ring = ring

    def kept(self, digest: str, content: bytes) -> tuple[str, bytes]:
        """The name and the bytes under which a content is stored, which has this hash."""
        if self._ring is None:
            return digest, content
        key = self._ring.current()
        from plansurvive.runtime.keys.cipher import encrypted  # lazily: `plan check` does without

        return _name(key, digest), encrypted(key, _CONTENT, content, same=True)

    def names(self, digest: str) -> Iterator[tuple[Key | None, str]]:
        """The names under which a content may be stored, each with its key; None: as it is. The newest first."""
        for key in reversed(self._ring.refresh().keys if self._ring else ()):
            yield key, _name(key, digest)
        yield None, digest

    def content(self, key: Key | None, data: bytes) -> bytes:
        """The content of a file that was found under one of its names. Raises Unauthentic."""
        if key is None:
            return data
        from plansurvive.runtime.keys.cipher import decrypted  # lazily, as above

        return decrypted(key, _CONTENT, data)

    def text(self, plain: str) -> str:
        """A text as it is stored in a database."""
        if self._ring is None:
            return plain
        from plansurvive.runtime.keys.cipher import encrypted  # lazily, as above

        key = self._ring.current()
        return f"{_MARK}{key.id} {base64.b64encode(encrypted(key, _TEXT, plain.encode())).decode()}"

    def plain(self, text: str) -> str:
        """The text that was stored. Raises KeyMissing, Unauthentic."""
        if not text.startswith(_MARK):
            return text
        name, _, data = text.removeprefix(_MARK).partition(" ")
        if self._ring is None:
            raise KeyMissing.of(name, "", 0)
        from plansurvive.runtime.keys.cipher import decrypted  # lazily, as above

        return decrypted(self._ring.key(name), _TEXT, base64.b64decode(data)).decode()


def _name(key: Key, digest: str) -> str:
    return hmac.digest(key.secret, _NAME + digest.encode(), hashlib.sha256).hex()[:32]
