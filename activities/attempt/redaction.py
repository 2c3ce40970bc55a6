"""Redacts secret values from every text before it leaves the worker (FAULTS T9).

Placeholder keys for local endpoints (`none`, `ollama`) are too short to count as secrets: redacting them would garble
ordinary text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic import SecretStr

MASK = "[secret]"
SHORTEST = 8
"""Shorter values are not treated as secrets."""
_KEY_SHAPE = re.compile(r"\bsk-[A-Za-z0-9_*.\-]{6,}")
"""Keys of OpenAI and compatible providers, also half masked as servers quote them."""


class Secrets:
    """The known secrets of a worker. Its repr does not contain them."""

    def __init__(self, values: Iterable[SecretStr | None]) -> None:
        plain = {value.get_secret_value() for value in values if value is not None}
        # Longest first: a secret may contain another.
        self._values = sorted((value for value in plain if len(value) >= SHORTEST), key=len, reverse=True)

    def out_of(self, text: str) -> str:
        """The text with the secrets masked."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def out_of_stream(self) -> StreamRedaction:
        """Masks the secrets in a stream of bytes; of each stream its own."""
        return StreamRedaction([value.encode() for value in self._values])

    def out_of_message(self, text: str) -> str:
        """A server's error text with the secrets masked, and anything that looks like an API key."""
        return _KEY_SHAPE.sub(MASK, self.out_of(text))

    def out_of_value(self, value: Any) -> Any:
        """A JSON value with the secrets masked, object keys included."""
        if isinstance(value, str):
            return self.out_of(value)
        if isinstance(value, list):
            return [self.out_of_value(each) for each in value]
        if isinstance(value, dict):
            return {self.out_of(name): self.out_of_value(each) for name, each in value.items()}
        return value


class StreamRedaction:
    """Masks secrets in bytes that arrive in pieces, a secret that lies across pieces included.

    Holds back only an end that may be the beginning of a secret, so that output can be followed live.
    """

    def __init__(self, secrets: list[bytes]) -> None:
        """`secrets`: longest first."""
        self._secrets, self._held = secrets, b""
        self._pattern = re.compile(b"|".join(map(re.escape, secrets))) if secrets else None

    def add(self, data: bytes) -> bytes:
        """What may be passed on now."""
        if self._pattern is None:
            return data
        data = self._held + data
        begun = min((len(data) - self._begun(secret, data) for secret in self._secrets), default=len(data))
        out, position = bytearray(), 0
        for match in self._pattern.finditer(data):
            if match.start() >= begun:
                break
            out += data[position : match.start()] + MASK.encode()
            position = match.end()
        begun = max(begun, position)
        self._held = data[begun:]
        return bytes(out + data[position:begun])

    def rest(self) -> bytes:
        """What was held back, at the end of the stream."""
        held, self._held = self._held, b""
        return self._pattern.sub(MASK.encode(), held) if self._pattern else held

    @staticmethod
    def _begun(secret: bytes, data: bytes) -> int:
        """Length of the longest end of `data` that is a beginning of the secret, but not all of it."""
        longest = min(len(secret) - 1, len(data))
        return next((length for length in range(longest, 0, -1) if data.endswith(secret[:length])), 0)
