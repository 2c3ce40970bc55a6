"""The key under which a call's result is found again: tool, arguments and what else is known before the tool runs.

Everything is hashed with a secret of the state directory (keyed BLAKE2, RFC 7693): neither a key nor the digest of an
argument tells anything to who has not got that secret, not even by guessing. Calls that are given secrets have no key
at all (`features.cache.calls`). Which files a call reads is known once it has read them, so they are not in the key:
entries of the same key differ in them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_DOMAIN = "plans: result of a call, 1"
"""First part of what is hashed: another form of the key gets another number."""


class CallKey(NamedTuple):
    """The key of a call, and the digests of its parts, to say what differs from another one."""

    name: str
    """64 hexadecimal digits."""
    tool: str
    environment: str
    arguments: dict[str, str]
    """Digests by argument."""


def call_key(
    secret: bytes, tool: Sequence[str], args: Mapping[str, Any], environment: Mapping[str, str],
    patterns: Sequence[str] | None = None,
) -> CallKey:  # fmt: skip
    """The key of a call.

    `tool`: its name and what tells its versions apart; `args`: values filled in, as JSON; `environment`: what else its
    result depends on; `patterns`: those of the files it reads, if the step lists them.
    """
    arguments = {name: digest(secret, "argument", name, value) for name, value in args.items()}
    version = digest(secret, "tool", list(tool))
    around = digest(secret, "environment", dict(environment), None if patterns is None else list(patterns))
    return CallKey(digest(secret, "call", version, around, arguments), version, around, arguments)


def digest(secret: bytes, *parts: Any) -> str:
    """64 hexadecimal digits of JSON values; the order of an object's names does not matter."""
    text = json.dumps([_DOMAIN, *parts], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), key=secret, digest_size=32).hexdigest()
