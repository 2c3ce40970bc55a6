"""Storage for payloads too large for history, using Temporal's external storage interface.

`LocalDirectory` is our driver: a content-addressed directory, written atomically and verified by hash on read. Every
worker and client of a task queue must see the same directory. Across machines use the SDK's S3 driver (`s3_driver`,
PLANS_STORAGE=s3://BUCKET): credentials, region and endpoint come from the environment, as for any AWS program, and
boto3 from the extra `s3`. `converter` returns the data converter that workers, clients and replayers share.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Self

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.aws.s3driver import S3StorageDriver, S3StorageDriverClient
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    EncodingPayloadConverter,
    ExternalStorage,
    SerializationContext,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)
from temporalio.worker._command_aware_visitor import current_command_info

from plans.errors import PlanError, Undecodable
from runtime.atomic_file import write_whole

EXTERNAL_BYTES = 65_536
"""Payloads of at least this many bytes are stored outside history."""

S3_MAX_BYTES = 256 * 1024 * 1024
"""Maximum payload size for S3, in bytes."""
_log = logging.getLogger(__name__)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NO_OBJECT = ("404", "NoSuchKey", "NotFound", "KeyTooLongError", "InvalidURI")
"""Answers of S3 about a key that no retry changes."""
_UNDECODABLE = b"plans/undecodable"
"""Encoding of the payload that takes the place of one that cannot be retrieved."""
_strict: ContextVar[bool] = ContextVar("_strict", default=False)
"""Whether what cannot be decoded raises: for clients and activities."""


class StorageError(PlanError):
    """Stored data is missing or damaged. Code VALUE_MISSING or VALUE_CORRUPT."""


class StorageGone(StorageError):
    """The whole storage is out of reach, such as a directory that is not mounted: it may be back for the next try."""


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
        """Retrieve payloads. Raises StorageError, or OSError when the same request may succeed later."""
        try:
            return [await asyncio.to_thread(self._retrieve, claim.claim_data.get("sha256", "")) for claim in claims]
        except RuntimeError as error:
            raise OSError("the threads that read files have been shut down with the worker") from error

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
            kind = StorageError if self.directory.is_dir() else StorageGone
            raise kind(
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

    def create(self) -> None:
        """Create the directory: from then on a missing one is a fault of the machine, not of a reference."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)


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


class Bucket(S3StorageDriver):
    """The SDK's driver, telling what can never be read (StorageError) from a bucket that is out of reach (OSError)."""

    def __init__(self, s3: Any, bucket: str) -> None:
        super().__init__(Boto(s3), bucket, max_payload_size=S3_MAX_BYTES)
        self._own = bucket

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """Retrieve payloads. Raises StorageError, or OSError when the same request may succeed later."""
        try:
            return await super().retrieve(context, claims)
        except (KeyError, ValueError, DecodeError) as error:  # a claim without a hash, or content with another one
            raise StorageError(f"the stored value is not what its reference says: {error}", "VALUE_CORRUPT") from error
        except RuntimeError as error:  # the SDK's, with the reason as its cause
            if isinstance(error.__cause__, StorageError):
                raise error.__cause__ from None
            if any(claim.claim_data["bucket"] != self._own for claim in claims):
                raise StorageError(f"the stored value is in another bucket: {error}", "VALUE_MISSING") from error
            raise ConnectionError(f"{error}: {error.__cause__}") from error


def s3_driver(bucket: str) -> StorageDriver:
    """The driver for a bucket. Raises StorageError BAD_SETTING:PLANS_STORAGE when boto3 is not installed."""
    try:
        import boto3
    except ImportError as error:
        text = "PLANS_STORAGE: S3 needs one more package; install plans-that-survive[s3]"
        raise StorageError(text, "BAD_SETTING:PLANS_STORAGE") from error
    return Bucket(boto3.client("s3"), bucket)


def converter(driver: StorageDriver, threshold: int = EXTERNAL_BYTES) -> DataConverter:
    """A data converter for pydantic values as JSON; payloads of at least `threshold` bytes go to the driver."""
    storage = ExternalStorage(drivers=[driver], payload_size_threshold=threshold)
    kind = OneConverter if isinstance(driver, LocalDirectory) else TolerantConverter
    return kind(payload_converter_class=OnePayloadConverter, external_storage=storage)


_PERMANENT = (StorageError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, DecodeError)
"""What a malformed or foreign reference raises, in the SDK or in a driver; an OSError may be gone at the next try."""


class TolerantConverter(DataConverter):
    """Gives a workflow an `Undecodable` in place of a start argument, signal, update or query it cannot decode.

    An exception would fail the workflow task, which is retried for ever: one message would block the plan for good.
    Results of activities and child workflows still raise: the task waits until the value is back, and never continues
    without it. So do clients and activities (`decode`), and storage that is out of reach.
    """

    async def decode(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Decode payloads for a client or an activity. Raises what cannot be decoded."""
        token = _strict.set(True)
        try:
            return await super().decode(payloads, type_hints)
        finally:
            _strict.reset(token)

    async def _decode_reference_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        return await _tolerantly(super()._decode_reference_payload_sequence, payloads)

    async def _external_retrieve_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        return await _tolerantly(super()._external_retrieve_payload_sequence, payloads)


async def _tolerantly(
    read: Callable[[Sequence[Payload]], Awaitable[list[Payload]]], given: Sequence[Payload]
) -> list[Payload]:
    """What `read` returns. For what people send to a workflow, a payload that it can never read is replaced."""
    try:
        return await read(given)
    except (StorageGone, OSError):
        raise
    except _PERMANENT as error:
        if _strict.get() or current_command_info.get() is not None:  # not None: the result of a command
            raise
        if len(given) == 1:
            _log.warning("a message or start argument is refused: %s", str(error)[:1_000])
            return [Payload(metadata={"encoding": _UNDECODABLE})]
        return [(await _tolerantly(read, [payload]))[0] for payload in given]


class OneConverter(TolerantConverter):
    """A data converter for a driver that ignores which workflow a payload belongs to.

    The SDK copies the converter for each payload to pass on that context, which doubles the cost of a payload.
    """

    def with_context(self, context: SerializationContext) -> Self:
        """This converter, unless it has a codec that wants the context: no other part of it does."""
        return self if self.payload_codec is None else super().with_context(context)

    def _with_store_context(self, _: StorageDriverStoreContext) -> DataConverter:
        return self


class OnePayloadConverter(PydanticPayloadConverter):
    """The SDK's pydantic payload converter, sharing one set of type adapters per process.

    With external storage the SDK creates a converter per activity and per client call, and each would rebuild the type
    adapters. They are its only state.
    """

    def __init__(self) -> None:
        CompositePayloadConverter.__init__(self, *_converters())

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Convert payloads to values. Without types, which is how messages arrive, what cannot be converted becomes
        an `Undecodable`; with types, and for clients and activities, it raises."""
        if type_hints or _strict.get():
            return super().from_payloads(payloads, type_hints)
        return [self._value(payload) for payload in payloads]

    def _value(self, payload: Payload) -> Any:
        if payload.metadata.get("encoding") == _UNDECODABLE:
            return Undecodable(_LOST, lost=True)
        try:
            return super().from_payloads([payload])[0]
        except MemoryError:
            raise
        except Exception as error:  # decoding alone: whatever a parser raises for the bytes of a payload
            return Undecodable(f"the message cannot be decoded: {_reason(error)}; send it as JSON (json/plain)")


_LOST = (
    "the message refers to content that is not in the storage of the plan's workers, or to none at all; send it from a"
    " client with the same state directory (PLANS_STATE_DIR) or bucket (PLANS_STORAGE)"
)


def _reason(error: Exception) -> str:
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {cause}"[:300]


@cache
def _converters() -> Sequence[EncodingPayloadConverter]:
    return tuple(PydanticPayloadConverter().converters.values())
