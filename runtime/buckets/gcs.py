"""A bucket of Google Cloud Storage as storage for payloads too large for history: PLANS_STORAGE=gs://BUCKET.

Credentials, project and endpoint come from the environment, as for any program of Google's library: application default
credentials, GOOGLE_APPLICATION_CREDENTIALS, or STORAGE_EMULATOR_HOST for a server that speaks the same protocol. The
library, google-cloud-storage, is in the extra `gcs`. Objects are named by the hash of their content and never change;
what is read is checked against its hash.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from runtime.keys.codec import Seal
from runtime.storage import StorageError

MAX_BYTES = 256 * 1024 * 1024
"""Maximum payload size, in bytes."""
SECONDS = 60.0
"""Timeout of one request; the library retries within it what may succeed at the next try."""
PREFIX = "v1/sha256/"
_DIGEST = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")


class GcsBucket(StorageDriver):
    """Tells what can never be read (StorageError) from a bucket that is out of reach (OSError)."""

    def __init__(self, bucket: Any, seal: Seal | None = None, seconds: float = SECONDS) -> None:
        """`bucket`: a `google.cloud.storage.Bucket`; `seal` encrypts what is stored; `seconds`: for one request."""
        self._bucket, self._seal, self._seconds = bucket, seal or Seal(), seconds

    def name(self) -> str:
        """The driver name recorded in claims."""
        return "plans-gcs"

    def type(self) -> str:
        """The driver type."""
        return "plans.gcs"

    async def store(self, _: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Store payloads. Raises OSError when it may succeed later, ValueError for one that is too big."""
        return list(await asyncio.gather(*(asyncio.to_thread(self._store, payload) for payload in payloads)))

    async def retrieve(self, _: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]) -> list[Payload]:
        """Retrieve payloads. Raises StorageError, or OSError when the same request may succeed later."""
        return list(await asyncio.gather(*(asyncio.to_thread(self._retrieve, each.claim_data) for each in claims)))

    def _store(self, payload: Payload) -> StorageDriverClaim:
        data = self._seal.on(payload).SerializeToString()
        if len(data) > MAX_BYTES:
            raise ValueError(f"a payload of {len(data)} bytes is too large for a bucket: {MAX_BYTES} at most")
        digest = hashlib.sha256(data).hexdigest()
        blob = self._bucket.blob(PREFIX + digest)
        if not self._asked(lambda patience: blob.exists(**patience)):
            self._asked(lambda patience: blob.upload_from_string(data, "application/octet-stream", **patience))
        return StorageDriverClaim({"bucket": self._bucket.name, "sha256": digest})

    def _retrieve(self, claim: Any) -> Payload:
        digest, bucket = claim.get("sha256", ""), claim.get("bucket", "")
        if bucket != self._bucket.name:
            raise StorageError(f"the stored value is in another bucket: {bucket[:200]!r}", "VALUE_MISSING")
        if not _DIGEST.fullmatch(digest):
            raise StorageError(f"the stored value is not what its reference says: {digest[:200]!r}", "VALUE_CORRUPT")
        blob = self._bucket.blob(PREFIX + digest)
        data: bytes = self._asked(lambda patience: blob.download_as_bytes(checksum=None, **patience))
        if hashlib.sha256(data).hexdigest() != digest:
            raise StorageError(f"the object {PREFIX}{digest} no longer has the content of its name", "VALUE_CORRUPT")
        try:
            return self._seal.off(Payload.FromString(data))
        except DecodeError as error:
            raise StorageError(f"the object {PREFIX}{digest} is not a payload: {error}", "VALUE_CORRUPT") from error

    def _asked(self, request: Callable[[dict[str, Any]], T]) -> T:
        """The answer of the bucket. Raises StorageError for an object that is not there, ConnectionError otherwise."""
        from google.api_core.exceptions import GoogleAPIError, NotFound
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.storage.retry import DEFAULT_RETRY
        from requests.exceptions import RequestException

        try:
            return request({"timeout": self._seconds, "retry": DEFAULT_RETRY.with_timeout(self._seconds)})
        except NotFound as error:
            raise StorageError(f"it is not in bucket {self._bucket.name!r}: {error}", "VALUE_MISSING") from error
        except (GoogleAPIError, GoogleAuthError, RequestException) as error:
            raise ConnectionError(f"bucket {self._bucket.name!r}: {error}") from error


def gcs_driver(bucket: str, seal: Seal | None = None, seconds: float = SECONDS) -> StorageDriver:
    """The driver for a bucket. Raises StorageError BAD_SETTING:PLANS_STORAGE without the library or credentials."""
    try:
        from google.auth.exceptions import DefaultCredentialsError
        from google.cloud import storage
    except ImportError as error:
        text = "PLANS_STORAGE: Google Cloud Storage needs one more package; install plans-that-survive[gcs]"
        raise StorageError(text, "BAD_SETTING:PLANS_STORAGE") from error
    try:
        return GcsBucket(storage.Client().bucket(bucket), seal, seconds)
    except (DefaultCredentialsError, OSError) as error:  # OSError: there are credentials, but of no project
        text = f"PLANS_STORAGE: there are no credentials for Google Cloud Storage: {error}"
        raise StorageError(text, "BAD_SETTING:PLANS_STORAGE") from error
