"""Large values of results: kept beside the entry, since the value store forgets what no plan refers to any more."""

from __future__ import annotations

import json
from typing import Any

import xxhash

from plansurvive.activities.workspace.content_store import ContentStore
from plansurvive.features.cache.entries import Entry
from plansurvive.features.cache.files import Unkept, Unusable
from plansurvive.features.cache.store import MAX_CONTENT
from plansurvive.plans.errors import ToolError
from plansurvive.plans.large_value import LargeValue
from plansurvive.runtime.value_store import AT_ONCE_BYTES, Chunk, Stream, ValueStore, apart


async def kept_text(large: LargeValue, contents: ContentStore, values: ValueStore) -> str:
    """Keep the JSON text of a value; returns the name of the content. Raises Unkept, or ToolError if it is lost."""
    text = await values.text(large)
    if len(text) > MAX_CONTENT or not await apart(len(text), lambda: contents.keep(text)):
        raise Unkept("its value could not be stored")
    return xxhash.xxh3_128_hexdigest(text)


async def restored(entry: Entry, contents: ContentStore, values: ValueStore) -> Entry:
    """The entry with its value where plans of now find it. Raises Unusable, or what the storage raises."""
    if entry.large is None:
        return entry
    text = await apart(AT_ONCE_BYTES + 1, lambda: contents.get(entry.text))
    if text is None:
        raise Unusable("damaged" if contents.drop(entry.text) else "gone")
    if not entry.large.streams:
        return entry.model_copy(update={"large": await values.put(text.decode())})
    fields = json.loads(text)
    for name in entry.large.streams:
        fields[name] = await _stored_again(fields[name], values)
    return entry.model_copy(update={"large": await values.put_with_streams(fields)})


async def _stored_again(found: Any, values: ValueStore) -> Stream:
    """A stream with all its chunks in the value store. Raises Unusable."""
    stream = Stream.model_validate(next(iter(found.values())))
    chunks = []
    try:
        for chunk in stream.chunks:
            claim = await values.put_bytes(await values.get_bytes(chunk.claim))
            chunks.append(Chunk(claim=claim, bytes=chunk.bytes, characters=chunk.characters))
    except ToolError as error:
        raise Unusable("gone" if error.code == "VALUE_MISSING" else "damaged") from None
    return stream.model_copy(update={"chunks": chunks})
