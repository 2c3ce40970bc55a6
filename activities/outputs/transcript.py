"""The stored part of what a command writes: chunks of each stream, and the index that says in which order they came.

The index is a chain, so that a command that writes for days does not store an ever longer list every second.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Literal

from plansurvive.plans.activity_io import STDERR, STDOUT, LogIndex, LogPart, Turns
from plansurvive.runtime.value_store import Chunk, Stream, ValueStore, json_characters

Number = Literal[1, 2]
"""Of a stream: STDOUT or STDERR."""
NUMBERS: tuple[Number, Number] = (STDOUT, STDERR)
CHUNK_BYTES = 1024 * 1024
"""Maximum length of a chunk."""
PARTS = 64
"""Parts listed in one index before the next one begins."""
MAX_TURNS = 1_000
"""Maximum number of turns of a part; of a more talkative one, only how much each stream got is kept."""
TRIES, FIRST_PAUSE = 5, 0.1
"""Attempts to store a chunk, and seconds between the first two; each pause is twice as long as the one before."""


class Transcript:
    """What is stored of the output of one attempt."""

    def __init__(self, store: ValueStore) -> None:
        self.claim: dict[str, str] = {}
        """Of the index; empty while nothing is stored."""
        self.stored: dict[Number, int] = dict.fromkeys(NUMBERS, 0)
        """Bytes by stream."""
        self._store, self._index = store, LogIndex()
        self._chunks: dict[Number, list[Chunk]] = {number: [] for number in NUMBERS}
        self._hashers = {number: hashlib.sha256() for number in NUMBERS}

    async def add(self, data: Mapping[Number, bytes], turns: Turns) -> None:
        """Store what came since the last call; `data` ends at the end of a character. Raises what the driver raises."""
        new = [(number, await self._chunk(number, piece)) for number in NUMBERS for piece in _pieces(data[number])]
        if len(self._index.parts) == PARTS:
            begun = {"stdout": self.stored[STDOUT], "stderr": self.stored[STDERR]}
            self._index = LogIndex(earlier=self.claim, **begun)
        for number, chunk in new:
            self._chunks[number].append(chunk)
            self.stored[number] += chunk.bytes
        part = LogPart(turns=shortened(turns, MAX_TURNS), chunks=[(number, chunk.claim) for number, chunk in new])
        self._index = self._index.model_copy(update={"parts": [*self._index.parts, part]})
        self.claim = await self._put(self._index.model_dump_json(exclude_defaults=True).encode(), b"json/plain")

    def stream(self, number: Number) -> Stream:
        """All of a stream."""
        hasher = self._hashers[number]
        return Stream(sha256=hasher.hexdigest(), bytes=self.stored[number], chunks=self._chunks[number])

    async def _chunk(self, number: Number, data: bytes) -> Chunk:
        claim = await self._put(data, b"binary/plain")
        characters = await asyncio.to_thread(json_characters, data)
        await asyncio.to_thread(self._hashers[number].update, data)
        return Chunk(claim=claim, bytes=len(data), characters=characters)

    async def _put(self, data: bytes, encoding: bytes) -> dict[str, str]:
        """Store one payload; several tries, as a storage out of reach for a second must not fail a long command."""
        for tries in range(TRIES - 1):
            try:
                return await self._store.put_bytes(data, encoding)
            except Exception:  # whatever a storage driver raises; the last try raises it
                await asyncio.sleep(FIRST_PAUSE * 2**tries)
        return await self._store.put_bytes(data, encoding)


def shortened(turns: Turns, most: int) -> Turns:
    """The turns, or only how much each stream got if there are more than `most`."""
    if len(turns) <= most:
        return turns
    return [(number, sum(length for each, length in turns if each == number)) for number in NUMBERS]


def unfinished(data: bytes | bytearray) -> int:
    """How many bytes at the end are the beginning of a character of UTF-8."""
    for length in range(1, min(3, len(data)) + 1):
        byte = data[-length]
        if byte >= 0xC0:
            return length if length < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            return 0
    return 0


def _pieces(data: bytes) -> list[bytes]:
    """The data in chunks that end at the end of a character."""
    pieces = []
    while len(data) > CHUNK_BYTES:
        end = CHUNK_BYTES - unfinished(data[CHUNK_BYTES - 4 : CHUNK_BYTES])
        pieces.append(data[:end])
        data = data[end:]
    return [*pieces, data] if data else pieces
