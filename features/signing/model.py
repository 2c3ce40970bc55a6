"""Signed starts and decisions: what is signed, and what is kept of it (PLANS_DECISIONS=signed).

A signature covers the whole message, the workflow's id, a random id and the time; that of a message to a plan also the
plan's nonce, which is another one after every start and every reset, so that nothing can be replayed to a later run.
Only the public key enters a workflow, as a fact of its worker. Verification is a pure function, the same on every
replay (Ed25519, RFC 8032).

A person's own key, or that of a web page, signs in place of the directory's (`own_keys`); with which public keys that
is verified, policy.toml says. It counts in a worker that asks for no signatures as well: it proves who has sent it.

Rejected: a shared secret, which would stand in the history, and an activity per message. Somebody who polls a task
queue of their own can be a parent; only an authorizing server stops that.

The nonce is the run's random seed: the server's, new after each start and reset, reported by the SDK and no secret, so
that the memo can show it. Rejected: the run id (a reset run replays differently), and a query.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from plansurvive.plans.model.parts import Part
from plansurvive.plans.signature import FIELD, Signature, message_digest

if TYPE_CHECKING:  # every command imports this module, and few sign
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
START_MINUTES = 10
"""How long a signed start may be used: later it is a replay. Longer than any client waits for the server."""
REMEMBERED = 500
"""Number of used signatures that a run remembers for one nonce; then it takes the next nonce."""
USED = "it was started before"
"""Why a start does not count whose signature another run has used."""
SIGNED_WORKFLOWS = ("PlanWorkflow", "AgentWorkflow", "CodingAgentWorkflow", "ChangesWorkflow")
"""The workflow types whose start is signed."""
SIGNED_MESSAGES: Mapping[str, str] = MappingProxyType({
    "approve": "decide", "deny": "decide", "decide": "decide", "begin": "control", "unpause": "control",
    "clear_session": "control", "control": "control", "edit": "edit", "regenerate": "regenerate",
    "answer": "answer", "event": "event", "withdraw": "withdraw",
})  # fmt: skip
"""Names of the signals and updates that are signed, and the kind that their signature is for."""
ADDED: Mapping[str, Mapping[str, Any]] = MappingProxyType({
    "approve": {"approved": True}, "deny": {"approved": False},
    "begin": {"action": "begin"}, "unpause": {"action": "unpause"}, "clear_session": {"action": "clear_session"},
})  # fmt: skip
"""What the name of a signal says, in the words of the update of the same kind: one form is signed."""
TIMED = re.compile(r"(plan-.+)-(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")
"""Id of a run of a schedule: Temporal adds the time that it was due."""
_DOMAIN = "plans: signed message, 1"
"""First part of what is signed: another form gets another number."""


class SigningFacts(Part):
    """Part of the facts of a plan: what its worker verifies with."""

    feature: ClassVar[str] = "signing"

    key: str = Field(default="", description="Public key that must have signed starts and decisions.")
    since: int | None = Field(
        default=0, description="When signatures of its schedule count: ms since 1970; null: it was started before."
    )


class SignedStart(Part):
    """Part of what the workers are asked before a plan begins: which signature its start has."""

    feature: ClassVar[str] = "signing"

    id: str = Field(default="", description="It counts once.")


class Honoured(Part):
    """Part of a run: the signatures that it has honoured, bounded; carried by continue-as-new."""

    feature: ClassVar[str] = "signing"

    nonce: str = Field(default="", description="What messages are signed for: of the first run, or of the last reset.")
    reset: bool = Field(default=False, description="The run was reset, and what was decided before is still in it.")
    used: list[str] = Field(default_factory=list, description="Ids of those honoured under the present nonce.")
    earlier: list[str] = Field(default_factory=list, description="Ids of those honoured under the nonce before it.")
    previous: str = Field(default="", description="The nonce before: what was on its way when it changed still counts.")

    def begin(self, nonce: str, *, reset: bool) -> None:
        """Messages are signed for this nonce from now on, and no other counts."""
        self.nonce, self.reset, self.used, self.earlier, self.previous = nonce, reset, [], [], ""

    def note(self, signature: Signature) -> bool:
        """Let a signature count no second time. Returns whether there is another nonce now: the memory was full.

        No clock is asked: what is forgotten was signed for a nonce that counts no more.
        """
        self.used.append(signature.id)
        if len(self.used) < REMEMBERED:
            return False
        self.earlier, self.used, self.previous, self.nonce = self.used, [], self.nonce, nonce_after(self.nonce)
        return True


def with_signature(
    key: Ed25519PrivateKey, kind: str, workflow_id: str, nonce: str, message: Mapping[str, Any], name: str = "",
    *, id: str, made: int, by: str = "",
) -> dict[str, Any]:  # fmt: skip
    """The message with its signature, as `signed_bytes` says what is signed.

    `name`: of the signal, if it is one; `id`: 32 random hexadecimal digits; `made`: when, in ms since 1970; `by`: whose
    key it is; empty: that of the state directory.
    """
    plain = json.loads(json.dumps({each: value for each, value in message.items() if each != FIELD}))
    content = signed_bytes(kind, workflow_id, nonce, plain | dict(ADDED.get(name, {})), id, made)
    signature = {"id": id, "time": made, "value": key.sign(content).hex(), **({"by": by} if by else {})}
    return {**plain, FIELD: signature}


def signed_bytes(
    kind: str,
    workflow_id: str,
    nonce: str,
    message: Mapping[str, Any],
    id: str,
    time: int,
) -> bytes:
    """What is signed.

    `kind`: `start`, `schedule`, `decide`, `withdraw`, `control`, `edit`, `regenerate`, `answer`, `event` or `news`;
    `nonce`: empty for the first two; `workflow_id` of a schedule: without the time that the server adds.
    """
    return content_of(kind, workflow_id, nonce, message_digest(message), id, time)


def content_of(kind: str, workflow_id: str, nonce: str, digest: str, id: str, time: int) -> bytes:
    """What is signed of a message with this digest."""
    return json.dumps([_DOMAIN, kind, workflow_id, nonce, id, time, digest], ensure_ascii=True).encode()


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
    found = TIMED.fullmatch(workflow_id)
    return found[1] if found else ""


def nonce_after(nonce: str) -> str:
    """The nonce that a run takes after this one."""
    return hashlib.sha256(f"after {nonce}".encode()).hexdigest()[: len(nonce)]
