"""Where data too large for history is kept, through Temporal's external storage interface.

`LocalDirectory` is a driver of our own: a directory of files named by the hash of their content, complete as soon as
they have their name, proved by the hash when read. Every worker and client of a task queue must see the same
directory. Across machines use the SDK's S3 driver (`s3_driver`, PLANS_STORAGE=s3://BUCKET): credentials, region and
endpoint come from the environment, as for any AWS program, and boto3 from the extra `s3`. `converter` makes the data
converter that workers, clients and replayers share.
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
"""Payloads from this size on are kept outside history."""

S3_MAX_BYTES = 256 * 1024 * 1024
"""Largest payload that S3 is given."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


class StorageError(PlanError):
    """Stored data is missing or damaged. Code VALUE_MISSING or VALUE_CORRUPT."""


class LocalDirectory(StorageDriver):
    """A directory of payloads by content. The same content twice is one file; what is stored never changes."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)

    def name(self) -> str:
        """The name claims are found again by."""
        return "plans-directory"

    def type(self) -> str:
        """The kind of driver."""
        return "plans.directory"

    async def store(self, _: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Keep payloads. Raises OSError when the directory cannot be written."""
        return [await asyncio.to_thread(self._store, payload) for payload in payloads]

    async def retrieve(self, _: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]) -> list[Payload]:
        """The payloads again. Raises StorageError."""
        return [await asyncio.to_thread(self._retrieve, claim.claim_data.get("sha256", "")) for claim in claims]

    def path(self, digest: str) -> Path:
        """The file of a content hash."""
        return self.directory / digest[:2] / digest[2:]

    def _store(self, payload: Payload) -> StorageDriverClaim:
        data = payload.SerializeToString()
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        try:
            os.utime(path)  # a sweep spares what was wanted lately
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
    """A boto3 client behind the driver's interface; its blocking calls run in threads."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3

    async def put_object(self, *, bucket: str, key: str, data: bytes) -> None:
        """Store an object."""
        await asyncio.to_thread(self._s3.put_object, Bucket=bucket, Key=key, Body=data)

    async def object_exists(self, *, bucket: str, key: str) -> bool:
        """Whether there is such an object."""
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
    """Pydantic values as JSON; payloads from `threshold` bytes on in the driver's care."""
    storage = ExternalStorage(drivers=[driver], payload_size_threshold=threshold)
    kind = OneConverter if isinstance(driver, LocalDirectory) else DataConverter
    return kind(payload_converter_class=OnePayloadConverter, external_storage=storage)


class OneConverter(DataConverter):
    """For a driver that does not mind whose payloads it keeps.

    The SDK makes a converter anew for each payload, to tell the driver. That takes as long as all the rest.
    """

    def _with_store_context(self, _: StorageDriverStoreContext) -> DataConverter:
        return self


class OnePayloadConverter(PydanticPayloadConverter):
    """The SDK's converter for pydantic values, of which there is one in a process.

    With external storage the SDK makes a new one for each activity and each call of the client, and each would learn
    every type anew. It holds nothing but what it has learned.
    """

    def __init__(self) -> None:
        CompositePayloadConverter.__init__(self, *_converters())


@cache
def _converters() -> Sequence[EncodingPayloadConverter]:
    return tuple(PydanticPayloadConverter().converters.values())
