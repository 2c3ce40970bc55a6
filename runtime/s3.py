"""The SDK's S3 driver, for workers on more than one machine: `PLANS_STORAGE=s3://BUCKET`.

Credentials, region and endpoint come from the environment, as for any AWS program (AWS_ENDPOINT_URL for your own
server). Only this module needs boto3; the extra `s3` installs it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.contrib.aws.s3driver import S3StorageDriver, S3StorageDriverClient
from temporalio.converter import StorageDriver

from runtime.storage import StorageError

MAX_BYTES = 256 * 1024 * 1024
"""Maximum payload size, in bytes."""


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
    return S3StorageDriver(Boto(boto3.client("s3")), bucket, max_payload_size=MAX_BYTES)
