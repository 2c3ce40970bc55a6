"""A storage that reads what runs have stored, and keeps what a replay stores in memory alone: nothing is written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

_MARK = "replayed"


class PassingStore(StorageDriver):
    """In front of another driver, which is only read."""

    def __init__(self, behind: StorageDriver) -> None:
        self._behind = behind
        self._kept: dict[str, Payload] = {}

    def name(self) -> str:
        """The name of the driver behind."""
        return self._behind.name()

    def type(self) -> str:
        """The type of the driver behind."""
        return self._behind.type()

    async def store(self, _: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Keep payloads until the replay has ended."""
        claims = []
        for payload in payloads:
            digest = hashlib.sha256(payload.SerializeToString(deterministic=True)).hexdigest()
            self._kept[digest] = payload
            claims.append(StorageDriverClaim({_MARK: digest}))
        return claims

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """Payloads of this replay, or of the run that is replayed. Raises what the driver behind raises."""
        return [await self._one(context, claim) for claim in claims]

    async def _one(self, context: StorageDriverRetrieveContext, claim: StorageDriverClaim) -> Payload:
        kept = self._kept.get(claim.claim_data.get(_MARK, ""))
        return kept if kept is not None else (await self._behind.retrieve(context, [claim]))[0]
