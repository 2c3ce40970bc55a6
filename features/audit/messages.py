"""What an audit record says of a message to a plan, and of a start: who, about what, and digests of the rest.

A message may have been written by anybody: every field is taken only in the form that it should have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from plansurvive.features.audit.entries import Signed, digest_of, short
from plansurvive.features.policy.model import People
from plansurvive.features.signing.model import ADDED, SCHEDULE, SIGNED_MESSAGES, START, schedule_of
from plansurvive.plans.signature import FIELD, PAGE, message_digest, signature_of

_HEX = re.compile(r"[0-9a-f]{64}")


def of_message(name: str, sent: Any, nonce: str, previous: str = "") -> dict[str, Any]:
    """The fields of an entry about a signal or an update with this content.

    `nonce`: of the run that it came to; `previous`: the one before it, if that counts as well.
    """
    if not isinstance(sent, Mapping):
        return {"action": short(name) or "message", "message": digest_of(sent)}
    message = {**sent, **ADDED.get(name, {})}
    found: dict[str, Any] = {
        "action": _action(name, message),
        **_who(message),
        "step_id": short(message.get("stepId"), 1_000) or short(message.get("name") if name == "event" else "", 1_000),
        "digest": hexadecimal(message.get("digest")),
        "version": _version(message),
        "message": message_digest(message),
    }
    if message.get("args") is not None:
        found["args"] = digest_of(message["args"])
    kind = SIGNED_MESSAGES.get(name)
    if kind and (signed := _signature(message, kind, nonce, previous, "")):
        found["signed"] = signed
    return found


def of_start(sent: Any, workflow_id: str, schedule: str) -> dict[str, Any]:
    """The fields of the entry about a workflow's start. `schedule`: that started it, if one did."""
    message = sent if isinstance(sent, Mapping) else {}
    plan, options = _object(message.get("plan")), _object(message.get("options"))
    run = _object(message.get("run")) or _object(message.get("agent"))
    options = options or _object(run.get("options"))
    plan = plan or _object(run.get("plan"))
    version = plan.get("version", 1 if plan else None)
    waits = "review" if options.get("review") else ""
    name = schedule_of(workflow_id)
    return {
        "by": short(options.get("by")),
        "via": "schedule" if schedule else "",
        "version": version if isinstance(version, int) and not isinstance(version, bool) else None,
        "message": message_digest(message) if message else digest_of(sent),
        "outcome": "--yes" if options.get("approveAll") else waits,
        "linked": f"plan-{run['resumes']}"[:1_000] if isinstance(run.get("resumes"), str) and run["resumes"] else "",
        "signed": _signature(message, SCHEDULE if name else START, "", "", name),
        "keys": keys_of(run.get("facts")),
    }


def keys_of(facts: Any) -> dict[str, str]:
    """The public keys in the facts of a plan, by whose they are."""
    parts = facts.get("parts") if isinstance(facts, Mapping) else None
    try:
        found = People.model_validate((parts or {}).get(People.feature) or {})
    except (ValidationError, AttributeError):
        return {}
    return found.people | {f"{PAGE}{name}": key for name, key in found.pages.items()}


def hexadecimal(found: Any) -> str:
    """A SHA-256 in hexadecimal digits; anything else counts as none."""
    return found if isinstance(found, str) and _HEX.fullmatch(found) else ""


def _action(name: str, message: Mapping[str, Any]) -> str:
    if name == "control":
        return short(message.get("action")) or name
    if name == "decide":
        if message.get("approved") is not True:
            return "deny"
        return "override" if message.get("override") is True else "approve"
    return short(name)


def _who(message: Mapping[str, Any]) -> dict[str, Any]:
    by, via = short(message.get("by")), short(message.get("via"))
    return {"by": by, "via": via, "verified": message.get("verified") is True}


def _version(message: Mapping[str, Any]) -> int | None:
    found = message.get("version", message.get("expectVersion"))
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _object(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _signature(message: Mapping[str, Any], kind: str, nonce: str, previous: str, workflow: str) -> Signed | None:
    found = signature_of(message)
    if found is None or FIELD not in message:
        return None
    return Signed(
        kind=kind,
        nonce=nonce,
        previous=previous,
        workflow=workflow,
        id=found.id,
        time=found.time,
        value=found.value,
        by=found.by,
    )
