"""Errors shared by the worker and the client: no server, no background worker, what cannot be decrypted."""

from __future__ import annotations

from typing import Self

from plansurvive.plans.errors import PlanError


class NotConnected(PlanError):
    """No Temporal server could be reached or started. The message has the address, or the end of the log, and a remedy.

    Code NOT_CONNECTED; NO_NAMESPACE; SERVER_FAILED and SERVER_OLDER for the embedded server; NO_TEMPORAL without a
    program to start.
    """

    code = "NOT_CONNECTED"


class WorkerFailed(PlanError):
    """The background worker did not start; the message contains the end of its log."""

    code = "WORKER_FAILED"


class KeyMissing(PlanError):
    """The key that something was encrypted with is not in the ring. Once it is, the next try succeeds."""

    code = "KEY_MISSING"

    @classmethod
    def of(cls, name: str, ring: str, keys: int) -> Self:
        """`name`: id of the key, as the payload says. `ring`: where this process has its keys from, or nothing."""
        shown = "".join(char for char in name[:40] if char.isalnum() or char == "-") or "without a name"
        held = f"the key ring of this process ({ring}, {keys} keys)" if ring else "this process: PLANS_KEYS is not set"
        return cls(
            f"encrypted with the key {shown}, which is not in {held}. Add that key to the ring; plans wait until it is"
            " there, and continue by themselves. `plan keys check` compares the keys of machines"
        )


class Unauthentic(PlanError):
    """Something encrypted was changed, or was made without the key."""

    code = "VALUE_CORRUPT"


class PlainRefused(PlanError):
    """A payload that is not encrypted, with PLANS_PLAIN=refuse."""

    code = "PLAIN_REFUSED"
