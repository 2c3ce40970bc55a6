"""How a secret may be spelt in a text that echoes it: as it is, escaped, quoted, or encoded whole.

Covered are JSON, URL, shell, HTML, Python and hexadecimal spellings, base64 also as a part of something longer (such
as `user:secret` in an Authorization header), and of a secret with several lines each long one. Not covered is what
takes a secret apart: pieces, hashes, compression, encryption, other alphabets.
"""

from __future__ import annotations

import base64
import html
import json
import shlex
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

SHORTEST = 8
"""Shorter texts are not treated as secrets: they would be found in ordinary text."""
LINE = 16
"""Characters that a line of a secret has at least to be masked alone."""


def spellings(secret: str) -> list[str]:
    """The texts that give the secret away, without those that are too short; no particular order."""
    return [text for text in dict.fromkeys(_all(secret)) if len(text) >= SHORTEST]


def _all(secret: str) -> Iterator[str]:
    yield secret
    lines = [line.strip() for line in secret.splitlines()]
    yield from (line for line in lines if len(lines) > 1 and len(line) >= LINE)
    for ascii_only in (False, True):
        yield json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
    yield json.dumps(json.dumps(secret))[3:-3]
    yield repr(secret)[1:-1]
    for text in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield text
        yield _lower(text)
    yield html.escape(secret)
    yield html.escape(secret, quote=False)
    yield shlex.quote(secret).strip("'")
    data = secret.encode("utf-8", "replace")
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        text = base64.b64encode(bytes(before) + data).decode()
        # What depends on the secret alone: without the first characters, and the last unless it is whole.
        part = text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        yield part
        yield part.replace("+", "-").replace("/", "_")


def _lower(text: str) -> str:
    """With the hexadecimal digits of `%2F` in lower case."""
    parts = text.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])
