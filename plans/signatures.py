"""Signed starts and decisions: what is signed, and whether a signature is good (PLANS_DECISIONS=signed).

A signature covers the whole message, the workflow's id, a random id and the time; that of a message to a plan also the
plan's nonce, which is another one after every start and every reset, so that nothing can be replayed to a later run.
Only the public key enters a workflow, as a fact of its worker. Verification is a pure function, the same on every
replay (Ed25519, RFC 8032).

Rejected: a shared secret, which would stand in the history, and an activity per message. Somebody who polls a task
queue of their own can be a parent; only an authorizing server stops that.

The nonce is the run's random seed: the server's, new after each start and reset, reported by the SDK and no secret, so
that the memo can show it. Rejected: the run id (a reset run replays differently), and a query.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from pydantic import Field

from plansurvive.plans.errors import Refused
from plansurvive.plans.model import Value

FIELD = "signature"
"""Field of a message that holds its signature; everything else of the message is signed."""
START = "start"
SCHEDULE = "schedule"
"""Kind of the signature of all starts of a schedule: for SCHEDULE_DAYS, until it is changed or deleted."""
SCHEDULE_DAYS = 366
"""How long a schedule's signature counts; every update of the schedule renews it."""
LATE = timedelta(days=1)
"""How long before its signature a run of a schedule may have been due: it may have waited for the one before."""
EARLY = timedelta(minutes=1)
"""How far the clock of the server may be behind: a run is never due later than it starts."""
NONCE = "nonce"
"""Entry of a workflow's memo with what messages to it are signed for, if its worker asks for signatures."""
SEED_OF_START = "plans_seed_of_start"
"""External function of workflows on our workers: the random seed that the run began with. A reset changes the seed."""
START_MINUTES = 10
"""How long a signed start may be used: later it is a replay. Longer than any client waits for the server."""
REMEMBERED = 500
"""Number of used signatures that a run remembers for one nonce; then it takes the next nonce."""
ADDED: Mapping[str, Mapping[str, Any]] = MappingProxyType({
    "approve": {"approved": True}, "deny": {"approved": False},
    "begin": {"action": "begin"}, "unpause": {"action": "unpause"}, "clear_session": {"action": "clear_session"},
})  # fmt: skip
"""What the name of a signal says, in the words of the update of the same kind: one form is signed."""
USED = "it was started before"
"""Why a start does not count whose signature another run has used."""
_TIMED = re.compile(r"(plan-.+)-(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")
"""Id of a run of a schedule: Temporal adds the time that it was due."""
_DOMAIN = "plans: signed message, 1"
"""First part of what is signed: another form gets another number."""


class Signature(Value):
    """A signature of a message by the key of a state directory."""

    id: str = Field(pattern=r"^[0-9a-f]{32}$", description="Random; a message is honoured once.")
    time: int = Field(ge=0, le=10**15, description="When it was signed, in milliseconds since 1970.")
    value: str = Field(pattern=r"^[0-9a-f]{128}$", description="The Ed25519 signature, hexadecimal.")


class Signatures(Value):
    """The signatures that a run has honoured, bounded; carried by continue-as-new."""

    used: list[str] = Field(default_factory=list, description="Ids of those honoured under the present nonce.")
    earlier: list[str] = Field(default_factory=list, description="Ids of those honoured under the nonce before it.")
    previous: str = Field(default="", description="The nonce before: what was on its way when it changed still counts.")


def signed_bytes(
    kind: str,
    workflow_id: str,
    nonce: str,
    message: Mapping[str, Any],
    id: str,
    time: int,
) -> bytes:
    """What is signed.

    `kind`: `start`, `schedule`, `decide`, `control`, `edit`, `regenerate`, `answer`, `event` or `news`; `nonce`: empty
    for the first two; `workflow_id` of a schedule: without the time that the server adds.
    """
    return content_of(kind, workflow_id, nonce, message_digest(message), id, time)


def message_digest(message: Mapping[str, Any]) -> str:
    """SHA-256 of a message without its signature: an audit record has it instead of the message."""
    rest = {name: value for name, value in message.items() if name != FIELD}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def content_of(kind: str, workflow_id: str, nonce: str, digest: str, id: str, time: int) -> bytes:
    """What is signed of a message with this digest."""
    return json.dumps([_DOMAIN, kind, workflow_id, nonce, id, time, digest], ensure_ascii=True).encode()


def signature_of(message: Any) -> Signature | None:
    """The signature in a raw message; None if there is none of the right form."""
    try:
        return Signature.model_validate(message[FIELD])
    except (TypeError, KeyError, ValueError):
        return None


def is_by(key: str, signature: Signature, content: bytes) -> bool:
    """Whether the owner of the public key (hexadecimal) has signed these bytes."""
    # Here, because every command imports this module and few runs verify; a worker has the library loaded already.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature.value), content)
    except (InvalidSignature, ValueError):
        return False
    return True


def schedule_of(workflow_id: str) -> str:
    """The workflow id that the schedule of this run was signed for; empty if no schedule gives such an id."""
    found = _TIMED.fullmatch(workflow_id)
    return found[1] if found else ""


def start_problem(
    key: str, signature: Signature | None, content: bytes, started: datetime, since: int | None = 0
) -> str:
    """Why the start of a workflow is not the key owner's; empty if it is.

    `started`: when the server took it; `since`: None if it was started before, as long as its signature counts.
    """
    if (problem := _unsigned(key, signature, content)) or signature is None:
        return problem
    if since is None:
        return USED
    age = started.timestamp() * 1_000 - signature.time
    return "" if abs(age) <= START_MINUTES * 60_000 else "its signature is too old, or from the future"


def schedule_problem(
    key: str, signature: Signature | None, content: bytes, workflow_id: str, started: datetime, since: int | None
) -> str:
    """Why the run of a schedule is not the key owner's; empty if it is.

    `since`: milliseconds since 1970 from which on signatures of the schedule count; None: its due time was used before.
    """
    if (problem := _unsigned(key, signature, content)) or signature is None:
        return problem
    made = datetime.fromtimestamp(signature.time / 1_000, UTC)
    if since is None:
        return "a run of its schedule for this time was started before"
    if signature.time < since:
        return "its schedule was changed or deleted after it was signed"
    if not made - EARLY <= started <= made + timedelta(days=SCHEDULE_DAYS):
        return "the signature of its schedule has expired; `plan schedule update` renews it"
    found = _TIMED.fullmatch(workflow_id)
    try:
        due = datetime.fromisoformat(found[2]) if found else None
    except ValueError:
        due = None
    if due is None or not made - LATE <= due <= started + EARLY:
        return "it was not due now"
    return ""


def _unsigned(key: str, signature: Signature | None, content: bytes) -> str:
    if signature is None:
        return "it is not signed"
    return "" if is_by(key, signature, content) else "its signature is not by the worker's key"


def checked(key: str, kind: str, workflow_id: str, nonce: str, message: Any, done: Signatures) -> Signature:
    """The signature of a message for the run's nonce. Raises Refused UNSIGNED, BAD_SIGNATURE or REPLAYED."""
    signature = signature_of(message)
    if signature is None:
        text = "this plan's worker takes only signed messages; set PLANS_DECISIONS=signed, with its state directory"
        raise Refused(text, "UNSIGNED")
    nonces = [nonce, done.previous] if done.previous else [nonce]
    contents = (signed_bytes(kind, workflow_id, each, message, signature.id, signature.time) for each in nonces)
    if not any(is_by(key, signature, content) for content in contents):
        text = (
            "the message is not signed by the worker's key for this run of the plan; look at the plan and decide again"
        )
        raise Refused(text, "BAD_SIGNATURE")
    if signature.id in done.used or signature.id in done.earlier:
        raise Refused("the message was sent before; decide again", "REPLAYED")
    return signature


def noted(done: Signatures, signature: Signature, nonce: str) -> tuple[Signatures, str]:
    """The honoured signatures with one more, and the nonce from then on: the next one once the memory is full.

    No clock is asked: what is forgotten was signed for a nonce that counts no more.
    """
    used = [*done.used, signature.id]
    if len(used) < REMEMBERED:
        return done.model_copy(update={"used": used}), nonce
    return Signatures(earlier=used, previous=nonce), nonce_after(nonce)


def nonce_after(nonce: str) -> str:
    """The nonce that a run takes after this one."""
    return hashlib.sha256(f"after {nonce}".encode()).hexdigest()[: len(nonce)]


def one_object(arguments: Sequence[Any]) -> Mapping[str, Any]:
    """The raw message among a handler's arguments; empty if there is none."""
    return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], dict) else {}
