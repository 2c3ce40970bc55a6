"""The signature in a message or a start, as it is sent. Whether it is good is for a feature to say.

A run whose worker takes only signed messages (`Facts.must_sign`) takes none that no feature has found good
(workflows/admission.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import Field

from plansurvive.plans.model import Value

FIELD = "signature"
"""Field of a message that holds its signature; everything else of the message is signed."""
SEED_OF_START = "plans_seed_of_start"
"""External function of workflows on our workers: the random seed that the run began with. A reset changes the seed."""
PAGE = "page:"
"""What the signer's name begins with if it is a web page, which vouches for the logins of people."""
ABOVE = "above:"
"""Stands for the signer of a run that another workflow began, for which it runs."""
M = TypeVar("M", bound=Value)


class Signature(Value):
    """A signature of a message by the key of a state directory, of a person or of a web page."""

    id: str = Field(pattern=r"^[0-9a-f]{32}$", description="Random; a message is honoured once.")
    time: int = Field(ge=0, le=10**15, description="When it was signed, in milliseconds since 1970.")
    value: str = Field(pattern=r"^[0-9a-f]{128}$", description="The Ed25519 signature, hexadecimal.")
    by: str = Field(
        default="",
        max_length=200,
        description="Whose key it is by: a person, `page:` and a page; empty: the directory.",
    )


def signature_of(message: Any) -> Signature | None:
    """The signature in a raw message; None if there is none of the right form."""
    try:
        return Signature.model_validate(message[FIELD])
    except (TypeError, KeyError, ValueError):
        return None


def signer_of(message: object) -> str:
    """Whose key has signed a message that was admitted (`vouched`); empty: nobody's, or a state directory's."""
    signature = getattr(message, FIELD, None)
    return signature.by if isinstance(signature, Signature) else ""


def vouched(message: M, signer: str) -> M:
    """The message as it counts: its signature names the signer that was verified, whatever it says itself."""
    signature = getattr(message, FIELD, None)
    if not isinstance(signature, Signature) or signature.by == signer:
        return message
    return message.model_copy(update={FIELD: signature.model_copy(update={"by": signer})})


def message_digest(message: Mapping[str, Any]) -> str:
    """SHA-256 of a message without its signature: an audit record has it instead of the message."""
    rest = {name: value for name, value in message.items() if name != FIELD}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def one_object(arguments: Sequence[Any]) -> Mapping[str, Any]:
    """The raw message among a handler's arguments; empty if there is none."""
    return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], dict) else {}
