"""What is signed, for all who sign it or look for the signature: clients, workers, audit records, notifications."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from plansurvive.plans.signatures import ADDED, FIELD, signed_bytes

if TYPE_CHECKING:  # every command imports this module, and few sign
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNED_WORKFLOWS = ("PlanWorkflow", "AgentWorkflow", "ChangesWorkflow")
"""The workflow types whose start is signed."""
SIGNED_MESSAGES: Mapping[str, str] = MappingProxyType({
    "approve": "decide", "deny": "decide", "decide": "decide", "begin": "control", "unpause": "control",
    "clear_session": "control", "control": "control", "edit": "edit", "regenerate": "regenerate",
    "answer": "answer", "event": "event",
})  # fmt: skip
"""Names of the signals and updates that are signed, and the kind that their signature is for."""


def with_signature(
    key: Ed25519PrivateKey, kind: str, workflow_id: str, nonce: str, message: Mapping[str, Any], name: str = "",
    *, id: str, made: int,
) -> dict[str, Any]:  # fmt: skip
    """The message with its signature, as `signed_bytes` says what is signed.

    `name`: of the signal, if it is one; `id`: 32 random hexadecimal digits; `made`: when, in ms since 1970.
    """
    plain = json.loads(json.dumps({each: value for each, value in message.items() if each != FIELD}))
    content = signed_bytes(kind, workflow_id, nonce, plain | dict(ADDED.get(name, {})), id, made)
    return {**plain, FIELD: {"id": id, "time": made, "value": key.sign(content).hex()}}
