"""Storage for payloads too large for history, using Temporal's external storage interface.

`LocalDirectory` is our driver: a content-addressed directory, written atomically and verified by hash on read. Every
worker and client of a task queue must see the same directory; across machines a bucket takes its place
(`runtime.buckets`). `converter` returns the data converter that workers, clients and replayers share.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from google.protobuf.message import DecodeError
from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import (
    DataConverter,
    DefaultFailureConverter,
    ExternalStorage,
    SerializationContext,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
    WithSerializationContext,
)
from temporalio.worker._command_aware_visitor import current_command_info

from plansurvive.plans.activity_io import STAYS
from plansurvive.plans.errors import PlanError, Undecodable
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.conversion.payloads import UNDECODABLE, OnePayloadConverter, marks_of_decoded, strict
from plansurvive.runtime.conversion.query_failures import EncryptedFailures
from plansurvive.runtime.errors import KeyMissing, PlainRefused, Unauthentic
from plansurvive.runtime.held import read_held
from plansurvive.runtime.sealing import UNSEALED, Sealing

EXTERNAL_BYTES = 65_536
"""Payloads of at least this many bytes are stored outside history."""
SHORT_BYTES = 65_536
"""Stored payloads of at most this many bytes are read in the event loop, and written there if no disk is awaited."""
KEY_SECONDS = 60
"""Seconds until a step is tried again whose worker lacks the key of its arguments."""
_log = logging.getLogger(__name__)
_DIGEST = re.compile(r"[0-9a-f]{64}")


class StorageError(PlanError):
    """Stored data is missing or damaged. Code VALUE_MISSING or VALUE_CORRUPT."""


class StorageGone(StorageError):
    """The whole storage is out of reach, such as a directory that is not mounted: it may be back for the next try."""


class LocalDirectory(StorageDriver):
    """A content-addressed directory of payloads: equal content is one file, and files never change."""

    def __init__(self, directory: Path | str, sealing: Sealing = UNSEALED, *, synced: bool = True) -> None:
        """`sealing` encrypts what is stored; files are named by the hash of what is in them.

        `synced`: to disk, when `store` returns.
        """
        self.directory, self._sealing, self._synced = Path(directory), sealing, synced

    def unsynced(self) -> LocalDirectory:
        """The same directory for what history has as well: a crash of the machine may lose it, and no disk is awaited.

        Equal content is one file: for what nobody else stores.
        """
        return LocalDirectory(self.directory, self._sealing, synced=False)

    def name(self) -> str:
        """The driver name recorded in claims."""
        return "plans-directory"

    def type(self) -> str:
        """The driver type."""
        return "plans.directory"

    async def store(self, _: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Store payloads. Raises OSError when the directory cannot be written."""
        return [
            await asyncio.to_thread(self._store, payload)
            if self._synced or len(payload.data) > SHORT_BYTES
            else self._store(payload)
            for payload in payloads
        ]

    async def retrieve(self, _: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]) -> list[Payload]:
        """Retrieve payloads. Raises StorageError, or OSError when the same request may succeed later."""
        return [await self._read(claim.claim_data.get("sha256", "")) for claim in claims]

    async def _read(self, digest: str) -> Payload:
        """Retrieve a payload: a short one at once, as handing it to another thread takes longer than to read it."""
        if self._is_short(digest):
            return self._retrieve(digest)
        try:
            return await asyncio.to_thread(self._retrieve, digest)
        except RuntimeError as error:
            raise OSError("the threads that read files have been shut down with the worker") from error

    def _is_short(self, digest: str) -> bool:
        with suppress(OSError, ValueError):  # what is missing or no claim of ours, `_retrieve` says
            return os.stat(f"{self.directory}/{digest[:2]}/{digest[2:]}").st_size <= SHORT_BYTES  # noqa: PTH116
        return False

    def path(self, digest: str) -> Path:
        """The file path for a content hash."""
        return self.directory / digest[:2] / digest[2:]

    def _store(self, payload: Payload) -> StorageDriverClaim:
        data = self._sealing.sealed(payload).SerializeToString()
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        try:
            os.utime(path)  # `plan prune` spares recently used files
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, data, durable=self._synced)
        return StorageDriverClaim({"sha256": digest})

    def _retrieve(self, digest: str) -> Payload:
        path = self.path(digest if _DIGEST.fullmatch(digest) else "no claim of ours")
        try:
            data = read_held(path)
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
        return self._sealing.opened(Payload.FromString(data))

    def create(self) -> None:
        """Create the directory: from then on a missing one is a fault of the machine, not of a reference."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def converter(driver: StorageDriver, threshold: int = EXTERNAL_BYTES, sealing: Sealing = UNSEALED) -> DataConverter:
    """A data converter for pydantic values as JSON; payloads of at least `threshold` bytes go to the driver.

    `sealing` encrypts payloads, and the messages of failures with them.
    """
    storage = ExternalStorage(drivers=[driver], payload_size_threshold=threshold)
    kind = OneConverter if isinstance(driver, LocalDirectory) else TolerantConverter
    failures = EncryptedFailures if sealing.encrypts else DefaultFailureConverter
    return kind(OnePayloadConverter, sealing.codec, failures, external_storage=storage)


_DECODING = "Failed decoding arguments"
"""The SDK's message for an activity whose arguments could not be decoded; the reason is its cause."""
_NEWER = frozenset(("extra_forbidden", "literal_error", "enum", "union_tag_invalid"))
"""Pydantic's types of errors in values of a version that has more fields or choices than this one."""


def _is_malformed(reason: BaseException | None) -> bool:
    return isinstance(reason, ValidationError) and any(
        error["type"] not in _NEWER for error in reason.errors(include_url=False, include_context=False)
    )


_PERMANENT = (
    StorageError,
    Unauthentic,
    PlainRefused,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
    DecodeError,
)
"""What a malformed or foreign reference raises, in the SDK or in a driver; an OSError may be gone at the next try."""


class TolerantConverter(DataConverter):
    """Gives a workflow an `Undecodable` in place of a start argument, signal, update or query it cannot decode.

    An exception would fail the workflow task, which is retried for ever: one message would block the plan for good.
    Results of activities and child workflows still raise: the task waits until the value is back, and never continues
    without it. So do clients and activities (`decode`), and storage that is out of reach.
    """

    async def decode(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Decode payloads for a client or an activity. Raises what cannot be decoded."""
        token = strict.set(True)
        try:
            if marks_of_decoded(self) is not None and _are_inline(payloads):
                return self.payload_converter.from_payloads(payloads, type_hints)
            return await super().decode(payloads, type_hints)
        finally:
            strict.reset(token)

    async def encode_failure(self, exception: BaseException, failure: Failure) -> None:
        """Encode a failure.

        An activity whose arguments are not of its input type fails for good: no retry changes them. A worker of the
        version before may lack a field or a choice that this one sends, or a key: those are tried again.
        """
        await super().encode_failure(exception, failure)
        if str(exception) == _DECODING and _is_malformed(exception.__cause__):
            failure.application_failure_info.type = Undecodable.code
            failure.application_failure_info.non_retryable = True
        lacking = exception if isinstance(exception, KeyMissing) else exception.__cause__
        if isinstance(lacking, KeyMissing) and failure.HasField("application_failure_info"):
            failure.application_failure_info.type = lacking.code
            failure.application_failure_info.non_retryable = False
            failure.application_failure_info.next_retry_delay.FromSeconds(KEY_SECONDS)

    async def _external_store_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Store the long ones, but no arguments of local activities: these never leave the process."""
        leaving = [each for each in payloads if STAYS not in each.metadata]
        stored = iter(await super()._external_store_payload_sequence(leaving) if leaving else ())
        return [each if STAYS in each.metadata else next(stored) for each in payloads]

    async def _decode_reference_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        if _are_inline(payloads):
            return list(payloads)
        return await _tolerantly(super()._decode_reference_payload_sequence, payloads)

    async def _decode_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        return await _tolerantly(super()._decode_payload_sequence, payloads)

    async def _external_retrieve_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        if _are_inline(payloads):
            return list(payloads)
        return await _tolerantly(super()._external_retrieve_payload_sequence, payloads)


def _are_inline(payloads: Sequence[Payload]) -> bool:
    """Whether all are JSON and say nothing else of themselves, as most do: none refers to the storage."""
    for each in payloads:  # noqa: SIM110 - a generator would cost what this saves
        if len(each.metadata) != 1 or each.metadata.get("encoding") != b"json/plain":
            return False
    return True


async def _tolerantly(
    read: Callable[[Sequence[Payload]], Awaitable[list[Payload]]], given: Sequence[Payload]
) -> list[Payload]:
    """What `read` returns. For what people send to a workflow, a payload that it can never read is replaced."""
    try:
        return await read(given)
    except (StorageGone, KeyMissing, OSError):  # none is final: the same message may be read at the next try
        raise
    except _PERMANENT as error:
        if strict.get() or current_command_info.get() is not None:  # not None: the result of a command
            raise
        if len(given) == 1:
            _log.warning("a message or start argument is refused: %s", str(error)[:1_000])
            return [Payload(metadata={"encoding": UNDECODABLE})]
        return [(await _tolerantly(read, [payload]))[0] for payload in given]


class OneConverter(TolerantConverter):
    """A data converter for a driver that ignores which workflow a payload belongs to.

    The SDK copies the converter for each payload to pass on that context, which doubles the cost of a payload.
    """

    def with_context(self, context: SerializationContext) -> Self:
        """This converter, unless it has a codec that wants the context: no other part of it does."""
        return super().with_context(context) if isinstance(self.payload_codec, WithSerializationContext) else self

    def _with_store_context(self, _: StorageDriverStoreContext) -> DataConverter:
        return self
