"""How what a process sends and stores is kept from other eyes. This is the interface; here, everything stays as it is.

The feature `keys` encrypts: payloads on their way to the server, large values in storage, and files of the state
directory. One object does all three, since they share their keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `plan check` loads the tools, and no Temporal client
    from google.protobuf.message import Message
    from temporalio.api.common.v1 import Payload
    from temporalio.converter import PayloadCodec


class Sealing:
    """Nothing is encrypted, and nothing that is encrypted can be read."""

    encrypts: bool = False
    """Whether what is new is encrypted."""
    codec: PayloadCodec | None = None
    """Of payloads between this process and the server."""

    def sealed(self, payload: Payload) -> Payload:
        """A payload as storage keeps it. May block; equal payloads give equal ones."""
        return payload

    def opened(self, payload: Payload) -> Payload:
        """The payload that storage kept. Raises KeyMissing or Unauthentic."""
        return payload

    def file_of(self, digest: str, content: bytes) -> tuple[str, bytes]:
        """The name and the bytes under which a content is stored that has this hash."""
        return digest, content

    def names(self, digest: str) -> Iterator[tuple[Any, str]]:
        """The names under which a content may be stored, the newest first, each with its key for `content`."""
        yield None, digest

    def content(self, key: Any, data: bytes) -> bytes:  # noqa: ARG002
        """The content of a file that was found under one of its names. Raises Unauthentic."""
        return data

    def text(self, plain: str) -> str:
        """A text as it is stored in a file or a database."""
        return plain

    def plain(self, text: str) -> str:
        """The text that was stored. Raises KeyMissing, Unauthentic."""
        return text

    def plain_texts(self, message: Message) -> Iterator[bytes]:  # noqa: ARG002
        """What is inside the encrypted payloads of a message of the server. Raises KeyMissing, Unauthentic."""
        yield from ()


UNSEALED = Sealing()
"""Without the feature `keys`."""
