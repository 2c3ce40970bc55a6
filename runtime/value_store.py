"""Stores step values too large for history in a storage driver, addressed by a claim and the hash of their JSON text.

Large values pass from step to step by reference: the workflow never loads them, only the activity that uses one does.

A field of a value may be a `Stream`: a text of any length, stored in chunks of a few MiB while it is written, and read
in the same way, so that neither needs more memory than a chunk. In the stored JSON text the stream is an object with
the claims of its chunks under the key `$stream`. Its content is bytes; as a text, those that are not UTF-8 are
replaced by U+FFFD.

Rejected: the SDK's external storage alone, with which every view and every new run would fetch all values.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from plansurvive.plans.activity_io import MAX_VALUE_BYTES, PREVIEW_CHARACTERS
from plansurvive.plans.errors import ToolError
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Value

if TYPE_CHECKING:
    from temporalio.converter import StorageDriver

T = TypeVar("T")
INLINE_BYTES = 8_192
"""Values whose JSON text is longer than this many bytes are stored outside history."""
AT_ONCE_BYTES = 65_536
"""Work on at most this many bytes is done at once: another thread costs more than hashing or parsing them."""
KNOWN_BYTES = 4_096
"""Fields of at most this many bytes of JSON text stay in history beside the reference to a value with streams."""
_STREAM = "$stream"


class Chunk(Value):
    """A piece of a stream. It never ends inside a character."""

    claim: dict[str, str]
    bytes: int
    characters: int = Field(description="Length of its text inside a JSON string.")


class Stream(Value):
    """A text stored in chunks."""

    sha256: str = Field(description="Hex digest of the content.")
    bytes: int
    chunks: list[Chunk]


class ValueStore:
    """A store for values whose JSON text is longer than `inline_bytes`."""

    def __init__(self, driver: StorageDriver, inline_bytes: int = INLINE_BYTES) -> None:
        self.driver = driver
        self.inline_bytes = inline_bytes

    async def put(self, json_text: str) -> LargeValue:
        """Store a JSON text. Raises what the driver raises: OSError for a directory."""
        data = json_text.encode()
        claim = await self.put_bytes(data, b"json/plain")
        digest = await apart(len(data), lambda: hashlib.sha256(data).hexdigest())
        return LargeValue(sha256=digest, bytes=len(data), preview=json_text[:PREVIEW_CHARACTERS], claim=claim)

    async def put_with_streams(self, fields: dict[str, Any]) -> LargeValue:
        """Store an object with at least one Stream among its fields. Raises as `put`."""
        streams = {name: each for name, each in fields.items() if isinstance(each, Stream)}
        stored = {name: _reference(each) if name in streams else each for name, each in fields.items()}
        large = await self.put(_json(stored))
        begun = {name: await self._beginning(each) if name in streams else each for name, each in fields.items()}
        whole = {name for name, each in streams.items() if each.bytes <= KNOWN_BYTES}
        known = {name: each for name, each in begun.items() if name not in streams or name in whole}
        return large.model_copy(
            update={
                "bytes": sum(each.bytes for each in streams.values()) + len(_json(begun | dict.fromkeys(streams, ""))),
                "preview": _json(begun)[:PREVIEW_CHARACTERS],
                "streams": {name: each.bytes for name, each in streams.items()},
                "known": {name: each for name, each in known.items() if len(_json(each).encode()) <= KNOWN_BYTES},
            }
        )

    async def put_bytes(self, data: bytes, encoding: bytes = b"binary/plain") -> dict[str, str]:
        """Store bytes as one payload; returns the driver's claim. Raises what the driver raises."""
        from temporalio.api.common.v1 import Payload  # lazily: `plan check` loads the tools, and no Temporal client
        from temporalio.converter import StorageDriverStoreContext

        payload = Payload(metadata={"encoding": encoding}, data=data)
        return dict((await self.driver.store(StorageDriverStoreContext(), [payload]))[0].claim_data)

    async def get_bytes(self, claim: dict[str, str]) -> bytes:
        """Load one payload. Raises ToolError VALUE_MISSING or VALUE_CORRUPT, or KeyMissing."""
        from temporalio.converter import StorageDriverClaim, StorageDriverRetrieveContext  # lazily, as above

        from plansurvive.runtime.errors import Unauthentic
        from plansurvive.runtime.storage import StorageError

        try:
            payload = (await self.driver.retrieve(StorageDriverRetrieveContext(), [StorageDriverClaim(claim)]))[0]
        except (StorageError, Unauthentic) as error:
            raise ToolError(error.code, error.message) from error
        return payload.data

    async def get(self, large: LargeValue, fields: Collection[str] | None = None) -> Any:
        """Load a value, its streams as texts; with `fields`, only these of its streams: the others are left out.

        Raises ToolError VALUE_MISSING, VALUE_CORRUPT or, for streams too long to be loaded, VALUE_TOO_LARGE.
        """
        text = await self.text(large)
        value = await apart(len(text), lambda: json.loads(text))
        for name in large.streams:
            if fields is None or name in fields:
                value[name] = await self._whole(name, _stream(value[name]))
            else:
                del value[name]
        return value

    async def text(self, large: LargeValue) -> bytes:
        """Load a value's JSON text as it is stored. Raises ToolError VALUE_MISSING or VALUE_CORRUPT."""
        return await self.get_bytes(large.claim)

    async def stream(self, large: LargeValue, name: str) -> StoredText:
        """A field of a value that is a stream, to be read in pieces. Raises as `text`."""
        return StoredText(_stream(json.loads(await self.text(large))[name]), self)

    async def excerpt(self, large: LargeValue, offset: int, length: int) -> tuple[str, int]:
        """`length` characters of the value's JSON text from `offset` on, and the length of all of it in characters.

        Loads only the chunks that hold them. Raises ToolError VALUE_MISSING or VALUE_CORRUPT.
        """
        found, position = [""], 0
        async for piece, size in self._json_pieces(large):
            start, end = max(offset - position, 0), max(offset + length - position, 0)
            if start < size and end > 0:
                text = piece if isinstance(piece, str) else _escaped(await self.get_bytes(piece.claim))
                found.append(text[start:end])
            position += size
        return "".join(found), position

    async def _json_pieces(self, large: LargeValue) -> AsyncIterator[tuple[str | Chunk, int]]:
        """The value's JSON text in order: texts, and chunks of streams, each with its length in characters."""
        before = "{"
        for name, each in json.loads(await self.text(large)).items():
            head = f"{before}{json.dumps(name, ensure_ascii=False)}: "
            before = ", "
            if name not in large.streams:
                text = head + json.dumps(each, ensure_ascii=False)
                yield text, len(text)
                continue
            yield f'{head}"', len(head) + 1
            for chunk in _stream(each).chunks:
                yield chunk, chunk.characters
            yield '"', 1
        yield "}", 1

    async def _whole(self, name: str, stream: Stream) -> str:
        if stream.bytes > MAX_VALUE_BYTES:
            raise ToolError(
                "VALUE_TOO_LARGE",
                f"{name} has {stream.bytes} bytes; as a part of arguments or of an expression,"
                f" {MAX_VALUE_BYTES // 1024 // 1024} MiB are the maximum. Write it to a file first: write_file takes"
                f" all of it with a reference that stands alone, as in content: $step.{name}",
            )
        return b"".join([each async for each in StoredText(stream, self).chunks()]).decode("utf-8", "replace")

    async def _beginning(self, stream: Stream) -> str:
        """The first characters of a stream; all of a short one."""
        data = bytearray()
        for chunk in stream.chunks:
            data += await self.get_bytes(chunk.claim)
            if len(data) > KNOWN_BYTES:
                break
        return bytes(data[:KNOWN_BYTES]).decode("utf-8", "replace")


@dataclass(frozen=True)
class StoredText:
    """A stream and where it is stored. A tool whose argument is annotated `str | StoredText` gets whole streams so."""

    stream: Stream
    store: ValueStore
    loop: asyncio.AbstractEventLoop | None = None
    """Where the storage driver runs, for `pieces`."""

    async def chunks(self) -> AsyncIterator[bytes]:
        """The content in order. Raises ToolError VALUE_MISSING or VALUE_CORRUPT."""
        for chunk in self.stream.chunks:
            yield await self.store.get_bytes(chunk.claim)

    def pieces(self) -> Iterator[bytes]:
        """The same in a thread other than the event loop's."""
        if self.loop is None:
            raise RuntimeError("a stored text without an event loop can be read with `chunks` only")
        for chunk in self.stream.chunks:
            try:
                yield asyncio.run_coroutine_threadsafe(self.store.get_bytes(chunk.claim), self.loop).result()
            except CancelledError:
                raise OSError("the worker is shutting down") from None

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """In a tool's arguments: not part of their JSON Schema, where the argument is a string."""
        return core_schema.is_instance_schema(cls)


async def apart(size: int, work: Callable[[], T]) -> T:
    """The result of some work on `size` bytes; done in another thread if they are many."""
    return work() if size <= AT_ONCE_BYTES else await asyncio.to_thread(work)


def json_characters(data: bytes) -> int:
    """Length of the text of a chunk inside a JSON string, in characters."""
    return len(_escaped(data))


def _escaped(data: bytes) -> str:
    return json.dumps(data.decode("utf-8", "replace"), ensure_ascii=False)[1:-1]


def _reference(stream: Stream) -> dict[str, Any]:
    return {_STREAM: stream.model_dump(mode="json")}


def _stream(stored: Any) -> Stream:
    return Stream.model_validate(stored[_STREAM])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
