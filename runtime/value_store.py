"""Stores step values too large for history in a storage driver, addressed by a claim and the hash of their JSON text.

Large values pass from step to step by reference: the workflow never loads them, only the activity that uses one does.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from plans.activity_io import PREVIEW_CHARACTERS, LargeValue
from plans.errors import ToolError
from runtime.storage import StorageError

INLINE_BYTES = 8_192
"""Values whose JSON text is longer than this many bytes are stored outside history."""


class ValueStore:
    """A store for values whose JSON text is longer than `inline_bytes`."""

    def __init__(self, driver: StorageDriver, inline_bytes: int = INLINE_BYTES) -> None:
        self.driver = driver
        self.inline_bytes = inline_bytes

    async def kept(self, json_text: str) -> LargeValue | None:
        """Store a JSON text if it is too long for history; None if it stays inline. Raises as `put`."""
        is_large = len(json_text) > self.inline_bytes or len(json_text.encode()) > self.inline_bytes
        return await self.put(json_text) if is_large else None

    async def put(self, json_text: str) -> LargeValue:
        """Store a JSON text. Raises what the driver raises: OSError for a directory."""
        data = json_text.encode()
        payload = Payload(metadata={"encoding": b"json/plain"}, data=data)
        claim = (await self.driver.store(StorageDriverStoreContext(), [payload]))[0]
        digest = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
        return LargeValue(
            sha256=digest, bytes=len(data), preview=json_text[:PREVIEW_CHARACTERS], claim=dict(claim.claim_data)
        )

    async def get(self, large: LargeValue) -> Any:
        """Load a value. Raises ToolError VALUE_MISSING or VALUE_CORRUPT."""
        return await asyncio.to_thread(json.loads, await self.text(large))

    async def text(self, large: LargeValue) -> bytes:
        """Load a value's JSON text. Raises ToolError VALUE_MISSING or VALUE_CORRUPT."""
        try:
            payload = (await self.driver.retrieve(StorageDriverRetrieveContext(), [StorageDriverClaim(large.claim)]))[0]
        except StorageError as error:
            raise ToolError(error.code, error.message) from error
        return payload.data
