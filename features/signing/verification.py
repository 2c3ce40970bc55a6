"""Whether a signature is good: a pure function, the same on every replay (Ed25519, RFC 8032)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from plansurvive.features.policy.model import People
from plansurvive.features.signing.model import (
    EARLY,
    LATE,
    SCHEDULE_DAYS,
    START_MINUTES,
    TIMED,
    USED,
    Honoured,
    is_by,
    signed_bytes,
)
from plansurvive.plans.errors import Refused
from plansurvive.plans.signature import PAGE, Signature, signature_of


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
    found = TIMED.fullmatch(workflow_id)
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
    whose = f"the key of {signature.by} in the worker's policy.toml" if signature.by else "the worker's key"
    return "" if key and is_by(key, signature, content) else f"its signature is not by {whose}"


def key_of(signature: Signature, author: str, known: People) -> tuple[str, str]:
    """The public key of the person or page that a signature names, or why it can be neither's.

    `author`: who the message says it is by, which a person's signature must bear out.
    """
    name = signature.by
    if name.startswith(PAGE):
        key = known.pages.get(name.removeprefix(PAGE), "")
        place = "[pages]; `plan keys page`, on the machine of the page, prints the line"
    else:
        key = known.people.get(name, "")
        place = "[people]; `plan keys person`, on the machine of that person, prints the line"
    if not key:
        why = "had no key in the worker's policy.toml when the plan began"
        return "", f"the signature is by {name}, who {why}: {place}"
    if author != name and not name.startswith(PAGE):
        return "", f"it says that it is by {author or 'an unnamed author'}, and {name} has signed it; use one name"
    return key, ""


def checked(key: str, kind: str, workflow_id: str, message: Any, done: Honoured) -> Signature:
    """The signature of a message for the run's nonce. Raises Refused UNSIGNED, BAD_SIGNATURE or REPLAYED."""
    signature = signature_of(message)
    if signature is None:
        text = "this plan's worker takes only signed messages; set PLANS_DECISIONS=signed, with its state directory"
        raise Refused(text, "UNSIGNED")
    nonces = [done.nonce, done.previous] if done.previous else [done.nonce]
    contents = (signed_bytes(kind, workflow_id, each, message, signature.id, signature.time) for each in nonces)
    if not any(is_by(key, signature, content) for content in contents):
        whose = f"the key of {signature.by}" if signature.by else "the worker's key"
        text = f"the message is not signed by {whose} for this run of the plan; look at the plan and decide again"
        raise Refused(text, "BAD_SIGNATURE")
    if signature.id in done.used or signature.id in done.earlier:
        raise Refused("the message was sent before; decide again", "REPLAYED")
    return signature
