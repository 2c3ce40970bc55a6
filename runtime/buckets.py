"""Buckets as storage for payloads too large for history: PLANS_STORAGE=s3://BUCKET or gs://BUCKET.

The drivers are the SDK's; what is ours is encryption, and telling what can never be read from what is out of reach.
Credentials, region, project and endpoint come from the environment, as for any program of the vendor's library, which
is in the extra `s3` (boto3) or `gcs` (google-cloud-storage) and loaded when its bucket is used. Objects are named by
the hash of their content and never change; what is read is checked against its hash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.aws.s3driver import S3StorageDriver, S3StorageDriverClient
from temporalio.contrib.gcp.gcsdriver import GCSStorageDriver, GCSStorageDriverClient
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from plansurvive.runtime.base.extras import install_line
from plansurvive.runtime.sealing import UNSEALED, Sealing
from plansurvive.runtime.storage import StorageError

MAX_BYTES = 256 * 1024 * 1024
"""Maximum payload size, in bytes."""
GCS_SECONDS = 60.0
"""Timeout of one request to Google; the library retries within it what may succeed at the next try."""
_NO_OBJECT = ("404", "NoSuchKey", "NotFound", "KeyTooLongError", "InvalidURI")
"""Answers of S3 about a key that no retry changes."""
T = TypeVar("T")


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
        """The content of an object. Raises StorageError if S3 says that there is none."""
        try:
            found = await asyncio.to_thread(self._s3.get_object, Bucket=bucket, Key=key)
        except self._s3.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in _NO_OBJECT:
                raise StorageError(f"there is no object {key[:200]!r} in {bucket!r}", "VALUE_MISSING") from error
            raise
        data: bytes = await asyncio.to_thread(found["Body"].read)
        return data


class GoogleClient(GCSStorageDriverClient):
    """Adapts a `google.cloud.storage.Client` to the driver's interface; blocking calls run in threads."""

    def __init__(self, client: Any, seconds: float = GCS_SECONDS) -> None:
        """`seconds`: for one request, its retries included."""
        self._client, self._seconds = client, seconds

    async def put_object(self, *, bucket: str, object_name: str, data: bytes) -> None:
        """Store an object unless it is there."""
        from google.api_core.exceptions import PreconditionFailed

        upload = self._blob(bucket, object_name).upload_from_string
        try:
            await self._asked(upload, data, "application/octet-stream", if_generation_match=0)
        except PreconditionFailed:  # another writer, or the try before this one, has stored the same content
            return

    async def object_exists(self, *, bucket: str, object_name: str) -> bool:
        """Whether the object exists."""
        return await self._asked(self._blob(bucket, object_name).exists)

    async def get_object(self, *, bucket: str, object_name: str) -> bytes:
        """The content of an object. Raises StorageError if Google says that there is none."""
        from google.api_core.exceptions import BadRequest, NotFound

        try:
            return await self._asked(self._blob(bucket, object_name).download_as_bytes, checksum=None)
        except (NotFound, BadRequest, ValueError) as error:  # of a name that no object can have as well
            raise StorageError(f"there is no object {object_name[:200]!r} in {bucket!r}", "VALUE_MISSING") from error

    def _blob(self, bucket: str, name: str) -> Any:
        return self._client.bucket(bucket).blob(name)

    async def _asked(self, request: Callable[..., T], *args: Any, **options: Any) -> T:
        from google.cloud.storage.retry import DEFAULT_RETRY

        retry = DEFAULT_RETRY.with_timeout(self._seconds)
        return await asyncio.to_thread(request, *args, **options, timeout=self._seconds, retry=retry)


class GcsDriver(GCSStorageDriver):
    """The SDK's driver, for which equal contents of any plans are one object, under the names that histories have."""

    def type(self) -> str:
        """The driver type."""
        return "plans.gcs"

    async def store(self, _: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Store payloads, whosever they are."""
        return await super().store(StorageDriverStoreContext(), payloads)


class Bucket(StorageDriver):
    """A driver of the SDK; tells what can never be read (StorageError) from a bucket that is out of reach (OSError)."""

    def __init__(self, driver: StorageDriver, bucket: str, sealing: Sealing = UNSEALED) -> None:
        """`bucket`: the one that `driver` stores in; `sealing` encrypts what is stored."""
        self._driver, self._own, self._sealing = driver, bucket, sealing

    def name(self) -> str:
        """The driver name recorded in claims."""
        return self._driver.name()

    def type(self) -> str:
        """The driver type."""
        return self._driver.type()

    async def store(self, context: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Store payloads. Raises OSError when it may succeed later, ValueError for one that is too big."""
        sealed = await asyncio.to_thread(lambda: [self._sealing.sealed(payload) for payload in payloads])
        try:
            return await self._driver.store(context, sealed)
        except RuntimeError as error:  # the SDK's, with the reason as its cause
            raise ConnectionError(f"{error}: {error.__cause__}") from error

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """Retrieve payloads. Raises StorageError, or OSError when the same request may succeed later."""
        try:
            found = await self._driver.retrieve(context, claims)
            return await asyncio.to_thread(lambda: [self._sealing.opened(payload) for payload in found])
        except (KeyError, ValueError, DecodeError) as error:  # a claim without a hash, or content with another one
            raise StorageError(f"the stored value is not what its reference says: {error}", "VALUE_CORRUPT") from error
        except RuntimeError as error:  # the SDK's, with the reason as its cause
            if isinstance(error.__cause__, StorageError):
                raise error.__cause__ from None
            if any(claim.claim_data.get("bucket") != self._own for claim in claims):
                raise StorageError(f"the stored value is in another bucket: {error}", "VALUE_MISSING") from error
            raise ConnectionError(f"{error}: {error.__cause__}") from error


def s3_driver(bucket: str, sealing: Sealing = UNSEALED) -> StorageDriver:
    """The driver for a bucket of S3. Raises StorageError BAD_SETTING:PLANS_STORAGE when boto3 is not installed."""
    try:
        import boto3
    except ImportError as error:
        text = "PLANS_STORAGE: S3 needs one more package; run: " + install_line("plansurvive[s3]")
        raise StorageError(text, "BAD_SETTING:PLANS_STORAGE") from error
    return Bucket(S3StorageDriver(Boto(boto3.client("s3")), bucket, max_payload_size=MAX_BYTES), bucket, sealing)


def gcs_driver(bucket: str, sealing: Sealing = UNSEALED, seconds: float = GCS_SECONDS) -> StorageDriver:
    """The driver for a bucket of Google. Without library or credentials: StorageError BAD_SETTING:PLANS_STORAGE."""
    try:
        from google.auth.exceptions import DefaultCredentialsError
        from google.cloud import storage
    except ImportError as error:
        text = "PLANS_STORAGE: Google Cloud Storage needs more packages; run: " + install_line("plansurvive[gcs]")
        raise StorageError(text, "BAD_SETTING:PLANS_STORAGE") from error
    try:
        client = GoogleClient(storage.Client(), seconds)
    except (DefaultCredentialsError, OSError) as error:  # OSError: there are credentials, but of no project
        text = f"PLANS_STORAGE: there are no credentials for Google Cloud Storage: {error}"
        raise StorageError(text, "BAD_SETTING:PLANS_STORAGE") from error
    return Bucket(GcsDriver(client, bucket, "plans-gcs", MAX_BYTES), bucket, sealing)
