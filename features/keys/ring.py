"""A key ring: 256-bit keys with ids. The newest key that is in use encrypts, all of them decrypt.

The text of a ring is TOML, the same in a file and from a command:

    [[key]]
    id = "20261122-5f0c91ab"                  # day it was made, and fingerprint of the secret
    secret = "base64 of 32 random bytes"
    from = 2026-11-22T18:10:00Z               # encrypts from then on; decrypts at once

`from` lies ahead of the moment in which a key is added, so that every process has read the ring before the first one
encrypts with the new key: add everywhere, then use.

Rejected: `MultiFernet` (128-bit keys, no binding to a purpose, no equal texts, no key that decrypts before it encrypts)
and Tink (no such key either, no ring that is read again). Also rejected: the first key of the file encrypts; then the
moment in which a file is copied decides.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.toml_file import syntax_problem

KEY_BYTES = 32
MAX_BYTES = 1024 * 1024
"""Largest text of a ring, in bytes."""
MAX_KEYS = 1_000
_FINGERPRINT = b"plans: id of a key, 1"


class BadRing(PlanError):
    """The text is no key ring. The message never contains any part of a key."""

    code = "BAD_KEYS"


@dataclass(frozen=True)
class Key:
    """One key. Its repr does not show the secret."""

    secret: bytes
    id: str
    since: datetime
    """When it begins to encrypt."""

    def __repr__(self) -> str:
        return f"Key({self.id}, from {self.since.isoformat()})"


@dataclass(frozen=True)
class KeyRing:
    """The keys, the oldest first. There is at least one."""

    keys: tuple[Key, ...]

    @cached_property
    def by_id(self) -> dict[str, Key]:
        """The keys by id."""
        return {key.id: key for key in self.keys}

    def current(self, now: datetime) -> Key:
        """The key that encrypts at a time: the newest one in use; before any of them is, the oldest."""
        return next((key for key in reversed(self.keys) if key.since <= now), self.keys[0])


def new_key(now: datetime, since: datetime) -> Key:
    """A random key that was made `now` and encrypts `since` then."""
    secret = secrets.token_bytes(KEY_BYTES)
    return Key(secret, f"{now.astimezone(UTC):%Y%m%d}-{fingerprint(secret)}", since)


def fingerprint(secret: bytes) -> str:
    """Eight hexadecimal digits that tell keys apart and say nothing about them."""
    return hashlib.sha256(_FINGERPRINT + secret).hexdigest()[:8]


def written(key: Key) -> str:
    """A key as it is written in a ring."""
    since = key.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f'[[key]]\nid = "{key.id}"\nsecret = "{base64.b64encode(key.secret).decode()}"\nfrom = {since}\n'


def parse(text: str) -> KeyRing:
    """The ring of a text. Raises BadRing."""
    if len(text) > MAX_BYTES:
        raise BadRing(f"a key ring has at most {MAX_BYTES:,} bytes")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # its message may quote a line with a secret
        line, problem = syntax_problem(error, text, quotes=False)
        raise BadRing(f"line {line}: {problem}; `plan keys new` writes a key ring") from None
    rows = data.get("key")
    if not isinstance(rows, list) or not rows or set(data) != {"key"}:
        raise BadRing("a key ring is a list of [[key]] tables, and nothing else; `plan keys new` writes one")
    if len(rows) > MAX_KEYS:
        raise BadRing(f"a key ring has at most {MAX_KEYS:,} keys")
    return KeyRing(tuple(sorted(_unique(_key(number, row) for number, row in enumerate(rows, 1)), key=_age)))


def _age(key: Key) -> tuple[datetime, str]:
    return key.since, key.id


def _unique(keys: Iterable[Key]) -> Iterable[Key]:
    seen = set[str]()
    for key in keys:
        if key.id in seen:
            raise BadRing(f"the key {key.id} occurs twice; remove one of them")
        seen.add(key.id)
        yield key


def _key(number: int, row: object) -> Key:
    if not isinstance(row, dict) or set(row) != {"id", "secret", "from"}:
        raise BadRing(f"key {number} needs `id`, `secret` and `from`, and nothing else")
    name, secret, since = row["id"], row["secret"], row["from"]
    if not isinstance(name, str) or not isinstance(secret, str):
        raise BadRing(f"key {number}: `id` and `secret` are texts")
    if not isinstance(since, datetime) or since.tzinfo is None:
        raise BadRing(f"key {number}: `from` is a time with a time zone, such as 2026-11-22T18:00:00Z")
    try:
        plain = base64.b64decode(secret, validate=True)
    except (binascii.Error, ValueError):
        plain = b""
    if len(plain) != KEY_BYTES:
        raise BadRing(f"key {number}: `secret` is {KEY_BYTES} random bytes in base64; `plan keys new` makes one")
    day, _, mark = name.partition("-")
    if not (len(day) == 8 and day.isascii() and day.isdigit()) or mark != fingerprint(plain):
        raise BadRing(f"key {number}: its `id` is not that of its secret; one of them was changed or cut off")
    return Key(plain, name, since)
