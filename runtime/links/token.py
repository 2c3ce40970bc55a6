"""What a one-time link is good for, as a token: the call that it decides about, for whom, until when, and a MAC of it.

The token carries all of it, so that the process that issues it and the one that honours it share a key and nothing
else. Pure: key and time are arguments. The MAC is HMAC-SHA256 (RFC 2104), in constant time compared.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime

from pydantic import Field, ValidationError

from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.messages import Digest
from plansurvive.plans.model import Value

MAX_CHARACTERS = 8_000
"""Of a token; a longer one is refused unread. The longest step id and address need less than half of it."""
_DOMAIN = b"plans: one-time link, 1\n"
"""First part of what is signed: another form gets another number, and the key is of no use for anything else."""


class LinkRefused(PlanError):
    """A link that decides nothing. Codes LINK_INVALID, LINK_EXPIRED, LINK_USED, LINK_BUSY."""

    code = "LINK_INVALID"


class Link(Value):
    """What a link decides about, and whose decision that is."""

    plan_id: str = Field(min_length=1, max_length=300)
    run: str = Field(
        min_length=1, max_length=100, description="First run of its workflow: another plan may get the id later."
    )
    step_id: str = Field(min_length=1, max_length=1_000)
    version: int = Field(ge=0, strict=True, description="Of the plan, as it was shown.")
    digest: Digest = Field(description="Of the call that was shown; the plan refuses a decision about another one.")
    person: str = Field(min_length=1, max_length=200, description="Whom the link was sent to: the `by` of a decision.")
    expires: int = Field(ge=0, le=10**11, strict=True, description="Seconds since 1970.")
    id: str = Field(pattern=r"^[0-9a-f]{32}$", description="Random; a link is used once.")

    @property
    def until(self) -> datetime:
        """When it expires."""
        return datetime.fromtimestamp(self.expires, UTC)


def written(key: bytes, link: Link) -> str:
    """The token: unpadded base64url (RFC 4648) of the link, a dot, and of its MAC; safe in a path of a URL."""
    text = link.model_dump_json(by_alias=True).encode()
    return f"{_encoded(text)}.{_encoded(_mac(key, text))}"


def read(key: bytes, token: str) -> Link:
    """The link of a token that the owner of the key has issued, expired or not. Raises LinkRefused LINK_INVALID."""
    first, dot, second = token.partition(".")
    if not dot or len(token) > MAX_CHARACTERS:
        raise _invalid()
    text = _decoded(first)
    # Compared as written: base64 has several spellings of the same bytes, and only ours is accepted.
    if not hmac.compare_digest(_encoded(_mac(key, text)).encode(), second.encode(errors="replace")):
        raise _invalid()
    try:
        return Link.model_validate_json(text)
    except ValidationError as error:
        raise _invalid() from error


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, _DOMAIN + text, hashlib.sha256)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    try:
        found = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise _invalid() from error
    if _encoded(found) != text:
        raise _invalid()
    return found


def _invalid() -> LinkRefused:
    return LinkRefused(
        "this is not a link that this machine has given out, or its key has been replaced; use a new one"
    )
