"""What can be wrong with something encrypted."""

from __future__ import annotations

from typing import Self

from plansurvive.plans.errors import PlanError


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
