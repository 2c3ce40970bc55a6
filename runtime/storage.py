"""Storage for payloads too large for history, using Temporal's external storage interface.

`LocalDirectory` is our driver: a content-addressed directory, written atomically and verified by hash on read. Every
worker and client of a task queue must see the same directory. Across machines use the SDK's S3 driver (`s3_driver`,
PLANS_STORAGE=s3://BUCKET): credentials, region and endpoint come from the environment, as for any AWS program, and
boto3 from the extra `s3`. `converter` returns the data converter that workers, clients and replayers share.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.contrib.aws.s3driver import S3StorageDriver, S3StorageDriverClient
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    EncodingPayloadConverter,
    ExternalStorage,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from plans.errors import PlanError
from runtime.atomic_file import write_whole

EXTERNAL_BYTES = 65_536
"""Payloads of at least this many bytes are stored outside history."""

S3_MAX_BYTES = 256 * 1024 * 1024
"""Maximum payload size for S3, in bytes."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


class StorageError(PlanError):
    """Stored data is missing or damaged. Code VALUE_MISSING or VALUE_CORRUPT."""


class LocalDirectory(StorageDriver):
    """A content-addressed directory of payloads: equal content is one file, and files never change."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)

    def name(self) -> str:
        """The driver name recorded in claims."""
        return "plans-directory"

    def type(self) -> str:
        """The driver type."""
        return "plans.directory"

    async def store(self, _: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Store payloads. Raises OSError when the directory cannot be written."""
        return [await asyncio.to_thread(self._store, payload) for payload in payloads]

    async def retrieve(self, _: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]) -> list[Payload]:
        """Retrieve payloads. Raises StorageError."""
        return [await asyncio.to_thread(self._retrieve, claim.claim_data.get("sha256", "")) for claim in claims]

    def path(self, digest: str) -> Path:
        """The file path for a content hash."""
        return self.directory / digest[:2] / digest[2:]

    def _store(self, payload: Payload) -> StorageDriverClaim:
        data = payload.SerializeToString()
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        try:
            os.utime(path)  # `plan prune` spares recently used files
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, data)
        return StorageDriverClaim({"sha256": digest})

    def _retrieve(self, digest: str) -> Payload:
        path = self.path(digest if _DIGEST.fullmatch(digest) else "no claim of ours")
        try:
            data = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            raise StorageError(
                f"the stored value {digest[:12]} is not in {self.directory}; all workers and clients must share one"
                " state directory: restore it, or run the step that made the value again",
                "VALUE_MISSING",
            ) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise StorageError(
                f"the stored value {path} no longer has the content it is named after; remove the file and run the"
                " step that made the value again",
                "VALUE_CORRUPT",
            )
        return Payload.FromString(data)


class Boto(S3StorageDriverClient):
    """Adapts a boto3 client to the driver's interface; blocking calls run in threads."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3

    async def put_object(self, *, bucket: str, key: str, data: bytes) -> None:
        """Store an object."""
        await asyncio.to_thread(self._s3.put_object, Bucket=bucket, Key=key, Body=data)

    async def object_exists(self, *, bucket: str, key: str) -> bool:
        """Whether the object exists."""
        try:
            await asyncio.to_thread(self._s3.head_object, Bucket=bucket, Key=key)
        except self._s3.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey", "NotFound"):
                return False
            raise
        return True

    async def get_object(self, *, bucket: str, key: str) -> bytes:
        """The content of an object."""
        found = await asyncio.to_thread(self._s3.get_object, Bucket=bucket, Key=key)
        data: bytes = await asyncio.to_thread(found["Body"].read)
        return data


def s3_driver(bucket: str) -> StorageDriver:
    """The driver for a bucket. Raises StorageError BAD_SETTING:PLANS_STORAGE when boto3 is not installed."""
    try:
        import boto3
    except ImportError as error:
        text = "PLANS_STORAGE: S3 needs one more package; install plans-that-survive[s3]"
        raise StorageError(text, "BAD_SETTING:PLANS_STORAGE") from error
    return S3StorageDriver(Boto(boto3.client("s3")), bucket, max_payload_size=S3_MAX_BYTES)


def converter(driver: StorageDriver, threshold: int = EXTERNAL_BYTES) -> DataConverter:
    """A data converter for pydantic values as JSON; payloads of at least `threshold` bytes go to the driver."""
    storage = ExternalStorage(drivers=[driver], payload_size_threshold=threshold)
    kind = OneConverter if isinstance(driver, LocalDirectory) else DataConverter
    return kind(payload_converter_class=OnePayloadConverter, external_storage=storage)


class OneConverter(DataConverter):
    """A data converter for a driver that ignores which workflow a payload belongs to.

    The SDK copies the converter for each payload to pass on that context, which doubles the cost of a payload.
    """

    def _with_store_context(self, _: StorageDriverStoreContext) -> DataConverter:
        return self


class OnePayloadConverter(PydanticPayloadConverter):
    """The SDK's pydantic payload converter, sharing one set of type adapters per process.

    With external storage the SDK creates a converter per activity and per client call, and each would rebuild the type
    adapters. They are its only state.
    """

    def __init__(self) -> None:
        CompositePayloadConverter.__init__(self, *_converters())


@cache
def _converters() -> Sequence[EncodingPayloadConverter]:
    return tuple(PydanticPayloadConverter().converters.values())
