"""Reads what is stored of an attempt's output, from any position on, in the order in which it was written."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Literal, NamedTuple

from plansurvive.plans.activity_io import STDERR, STDOUT, LogIndex, LogPart, Logs, Turns
from plansurvive.plans.views.progress.logs import LoggedAttempt
from plansurvive.runtime.value_store import ValueStore

Number = Literal[1, 2]
"""Of a stream: STDOUT or STDERR."""
Position = dict[Number, int]
"""By stream, the bytes that have been read."""


class Piece(NamedTuple):
    """Output of one stream."""

    stream: Number
    data: bytes


async def output(attempt: LoggedAttempt, store: ValueStore, after: Position) -> AsyncIterator[Piece]:
    """The output of an attempt from a position on, which is moved along.

    Raises ToolError VALUE_MISSING or VALUE_CORRUPT if it is not in the storage that this machine reaches.
    """
    logs = attempt.logs
    if logs is None:
        return
    turns = logs.of_value
    source = _stored(logs, store, after) if turns is None else _of_value(attempt, store, turns)
    position: Position = {STDOUT: 0, STDERR: 0}
    async for start, piece in source:
        if start is not None:
            position = dict(start)
        seen = max(0, after[piece.stream] - position[piece.stream])
        position[piece.stream] += len(piece.data)
        if piece.data[seen:]:
            after[piece.stream] = position[piece.stream]
            yield Piece(piece.stream, piece.data[seen:])


Sourced = tuple[Position | None, Piece]
"""A piece; and where its streams stand before it, if that does not follow from the pieces before."""


async def _of_value(attempt: LoggedAttempt, store: ValueStore, turns: Turns) -> AsyncIterator[Sourced]:
    texts: Mapping[str, object] = attempt.texts
    if attempt.value is not None:
        texts = await store.get(attempt.value)
    names: dict[Number, str] = {STDOUT: "stdout", STDERR: "stderr"}
    streams = {stream: str(texts.get(name, "")).encode() for stream, name in names.items()}
    for piece in _in_turns(streams, turns):
        yield None, piece


async def _stored(logs: Logs, store: ValueStore, after: Position) -> AsyncIterator[Sourced]:
    if logs.index:
        for index in await _indexes(logs, store, after):
            position: Position = {STDOUT: index.stdout, STDERR: index.stderr}
            for part in index.parts:
                end = {stream: position[stream] + _length(part, stream) for stream in position}
                if any(end[stream] > after[stream] for stream in end):
                    start: Position | None = dict(position)
                    async for piece in _part(part, store):
                        yield start, piece
                        start = None
                position = end
    start = {STDOUT: logs.stdout, STDERR: logs.stderr}
    pieces = [Piece(stream, base64.b64decode(text)) for stream, text in logs.end]
    for stream, data in pieces:
        start[stream] -= len(data)
    for number, piece in enumerate(pieces):
        yield None if number else start, piece


async def _indexes(logs: Logs, store: ValueStore, after: Position) -> list[LogIndex]:
    """The indexes that hold anything after the position, oldest first."""
    found, claim = [], logs.index
    while claim:
        found.append(LogIndex.model_validate_json(await store.get_bytes(claim)))
        if found[-1].stdout <= after[STDOUT] and found[-1].stderr <= after[STDERR]:
            break
        claim = found[-1].earlier
    return found[::-1]


async def _part(part: LogPart, store: ValueStore) -> AsyncIterator[Piece]:
    streams: dict[Number, bytes] = {STDOUT: b"", STDERR: b""}
    for stream, claim in part.chunks:
        streams[stream] += await store.get_bytes(claim)
    for piece in _in_turns(streams, part.turns):
        yield piece


def _in_turns(streams: Mapping[Number, bytes], turns: Turns) -> Iterator[Piece]:
    position: Position = {STDOUT: 0, STDERR: 0}
    for stream, length in turns:
        yield Piece(stream, streams[stream][position[stream] : position[stream] + length])
        position[stream] += length
    for stream, data in streams.items():  # nothing is lost if the turns do not say it all
        if data[position[stream] :]:
            yield Piece(stream, data[position[stream] :])


def _length(part: LogPart, stream: Number) -> int:
    return sum(length for each, length in part.turns if each == stream)
