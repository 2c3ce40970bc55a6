"""Redacts secret values from every text before it leaves the worker (FAULTS T9).

Placeholder keys for local endpoints (`none`, `ollama`) are too short to count as secrets: redacting them would garble
ordinary text. Values of features are masked in every spelling of `activities.values.spellings`, from the moment
a worker has read them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import SecretStr

from plansurvive.activities.values.spellings import SHORTEST, spellings

MASK = "[secret]"
_KEY_SHAPE = re.compile(r"\bsk-[A-Za-z0-9_*.\-]{6,}")
"""Keys of OpenAI and compatible providers, also half masked as servers quote them."""


class Seen(Protocol):
    """Values of a feature that were read so far, and how often there was a new one."""

    @property
    def version(self) -> int:
        """Grows with each new value."""

    @property
    def seen(self) -> list[str]:
        """The values."""


@dataclass(frozen=True)
class Fixed:
    """Values that stay the same as long as the worker runs."""

    seen: list[str]
    version: int = 0


class Secrets:
    """The known secrets of a worker. Its repr does not contain them."""

    def __init__(self, values: Iterable[SecretStr | None], masked: Sequence[Seen] = ()) -> None:
        """`masked`: those of features; there may be more with each call."""
        plain = {value.get_secret_value() for value in values if value is not None}
        self._fixed = frozenset(text for value in plain if len(value) >= SHORTEST for text in spellings(value))
        self._masked, self._version = masked, -1
        self._known: list[str] = []
        self._pattern: re.Pattern[bytes] | None = None
        self._bytes: list[bytes] = []

    @property
    def known(self) -> list[str]:
        """The texts to mask, the longest first: a secret may contain another."""
        version = sum([each.version for each in self._masked])
        if version != self._version:
            texts = self._fixed.union(*(spellings(value) for value in self._values()))
            self._known = sorted(texts, key=lambda text: (-len(text), text))
            self._bytes = [text.encode() for text in self._known]
            self._pattern = re.compile(b"|".join(map(re.escape, self._bytes))) if texts else None
            self._version = version
        return self._known

    def _values(self) -> Iterator[str]:
        return (value for each in self._masked for value in each.seen if len(value) >= SHORTEST)

    def in_bytes(self) -> tuple[list[bytes], re.Pattern[bytes] | None]:
        """The same as bytes, and the pattern of all of them; None without any."""
        _ = self.known
        return self._bytes, self._pattern

    def out_of(self, text: str) -> str:
        """The text with the secrets masked."""
        for value in self.known:
            if value in text:
                text = text.replace(value, MASK)
        return text

    def are_in(self, text: str) -> bool:
        """Whether a text holds a secret."""
        known = self.known
        return bool(known) and any(value in text for value in known)

    def out_of_stream(self) -> StreamRedaction:
        """Masks the secrets in a stream of bytes; of each stream its own."""
        return StreamRedaction(self)

    def out_of_message(self, text: str) -> str:
        """A server's error text with the secrets masked, and anything that looks like an API key."""
        return _KEY_SHAPE.sub(MASK, self.out_of(text))

    def out_of_value(self, value: Any) -> Any:
        """A JSON value with the secrets masked, object keys and numbers included."""
        if isinstance(value, str):
            return self.out_of(value)
        if isinstance(value, list):
            return [self.out_of_value(each) for each in value]
        if isinstance(value, dict):
            return {self.out_of(name): self.out_of_value(each) for name, each in value.items()}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MASK if self.are_in(str(value)) else value
        return value


class LogRedaction(logging.Filter):
    """Masks the secrets in what a worker logs, stack traces included."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true: the record is kept, without secrets."""
        text = record.getMessage()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._secrets.out_of(record.exc_text)
        if self._secrets.are_in(text):
            record.msg, record.args = self._secrets.out_of(text), ()
        return True


def guard_logs(secrets: Secrets) -> None:
    """Have the handlers of this process's log mask these secrets, from now on."""
    for handler in logging.getLogger().handlers:
        for old in [each for each in handler.filters if isinstance(each, LogRedaction)]:
            handler.removeFilter(old)
        handler.addFilter(LogRedaction(secrets))


class StreamRedaction:
    """Masks secrets in bytes that arrive in pieces, a secret that lies across pieces included.

    Holds back only an end that may be the beginning of a secret, so that output can be followed live.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets, self._held = secrets, b""

    def add(self, data: bytes) -> bytes:
        """What may be passed on now."""
        known, pattern = self._secrets.in_bytes()
        if pattern is None:
            return data
        data = self._held + data
        begun = min((len(data) - self._begun(secret, data) for secret in known), default=len(data))
        out, position = bytearray(), 0
        for match in pattern.finditer(data):
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
        pattern = self._secrets.in_bytes()[1]
        return pattern.sub(MASK.encode(), held) if pattern else held

    @staticmethod
    def _begun(secret: bytes, data: bytes) -> int:
        """Length of the longest end of `data` that is a beginning of the secret, but not all of it."""
        last = data[-(len(secret) - 1) :]
        at = last.find(secret[:1])
        while at >= 0:
            if secret.startswith(last[at:]):
                return len(last) - at
            at = last.find(secret[:1], at + 1)
        return 0
