"""One call that may take the result of an earlier run: looked for before the tool is called, kept after.

Looked for when the arguments are checked and approved, and before limits are asked: what is taken uses up none.
Nothing here fails a step: what cannot be looked up, or not kept, is a note in its result, and the tool runs.

The activity looks results up, so commands of the workflow are the same with and without. Which files a call reads is
known when it has read them, so they are compared and are not part of the key. Rejected: tracing all that a command
reads (dearer than most results, and it misses listed directories).
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import xxhash

from plansurvive.activities.provenance.watcher import TRACED
from plansurvive.activities.sandbox.process import environment
from plansurvive.activities.tools.agents_md import collect
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.activities.workspace.content_store import ContentStore
from plansurvive.features.cache.entries import MAX_FILES, Entry, Output, compared, same_files
from plansurvive.features.cache.files import Recreation, Unkept, Unusable, left, listed, stamps_now
from plansurvive.features.cache.keys import CallKey, call_key, digest
from plansurvive.features.cache.model import CacheNote, CacheOrder
from plansurvive.features.cache.store import MAX_CONTENT, ResultStore
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.large_value import LargeValue
from plansurvive.runtime.value_store import AT_ONCE_BYTES, Chunk, StoredText, Stream, ValueStore, apart


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


_NOT_OF_RESULTS = ("HOME", "TMPDIR", "TERM")
"""Variables of commands that say where, not what."""


@dataclass
class CachedCall:
    """One attempt of a call that may take an earlier result."""

    store: ResultStore
    values: ValueStore
    tool: Tool
    version: tuple[str, ...]
    """What tells versions of the tool apart; empty: nothing does."""
    context: ToolContext
    args: Mapping[str, Any]
    order: CacheOrder
    is_filled: bool = False
    """Its arguments hold values that only this worker has."""
    note: CacheNote = field(default_factory=CacheNote)
    _key: CallKey | None = None
    _listed: dict[str, Stamp | None] | None = None

    async def taken(self) -> Entry | None:
        """The entry whose result is now that of the call, its files re-created; None if the tool is to run.

        Raises ToolError if the effect log cannot be written.
        """
        if refused := self._refused():
            self._say(why="never", unkept=refused)
            return None
        try:
            found = await asyncio.to_thread(self._look)
            if found is None:
                return None
            entry_id, entry = found
            taken = await restored(entry, self.store.contents, self.values)
            await asyncio.to_thread(self._take, entry_id, taken)
        except Unusable as reason:
            self._say(why=str(reason))
            return None
        except (Unkept, OSError, PlanError) as error:
            if isinstance(error, ToolError) and error.code in ("EFFECTS_UNAVAILABLE", "OUTCOME_UNKNOWN", "NO_SPACE"):
                raise
            self._key = None
            self._say(why="never", unkept=str(error)[:300])
            return None
        self.note = CacheNote(taken_from=entry.place, made=entry.made)
        return taken

    async def keep(self, kept: Any) -> None:
        """Keep the result for later runs, if it can be taken exactly."""
        if self._key is None:
            return
        try:
            text = await kept_text(kept, self.store.contents, self.values) if isinstance(kept, LargeValue) else ""
            await asyncio.to_thread(self._keep, self._key, kept, text)
        except (Unkept, OSError, PlanError) as error:
            self._say(unkept=str(error)[:300])
        else:
            self._say(kept=True)

    def _refused(self) -> str:
        """Why the tool is called in any case."""
        call, spec = self.context.call, self.tool.spec
        if self.is_filled:
            return "it is given a secret"
        if not self.version:
            return f"the code of {spec.name} cannot be distinguished from other code; declare a version"
        if spec.reads == "unknown" and self.order.reads is None:
            return f"{spec.name} does not report which files it reads"
        if self.order.outside:
            return ""
        if spec.name in TRACED and self.context.sandbox.has_network(self.args.get("network") is True):
            return "commands have network access here"
        if spec.outside or not call.repeatable:
            return f"{spec.name} may have effects outside the workspace"
        return ""

    def foreseen(self, made: Mapping[str, Output]) -> tuple[Entry | None, CacheNote]:
        """The entry whose result the call would take, and what the call would note. Takes nothing, changes nothing.

        `made`: files that the results of calls before it would re-create.
        """
        if refused := self._refused():
            return None, CacheNote(why="never", unkept=refused)
        if not self.store.exists:
            return None, CacheNote(why="fresh" if self.order.fresh else "first")
        try:
            found = self._search(made)
        except (Unkept, OSError, PlanError) as error:
            return None, CacheNote(why="never", unkept=str(error)[:300])
        return (found[1], CacheNote(taken_from=found[1].place)) if found else (None, self.note)

    def _look(self) -> tuple[str, Entry] | None:
        return self._search({}, self.store.drop)

    def _search(
        self, made: Mapping[str, Output], drop: Callable[[str], None] = lambda _: None
    ) -> tuple[str, Entry] | None:
        """The entry that fits; else `note` says why none does. `drop`: what happens to a damaged one."""
        self._key = call_key(self.store.secret, self.version, _as_json(self.args), self._around(), self.order.reads)
        if self.order.reads is not None:
            self._listed = listed(self.context.workspace, self.order.reads)
        if self.order.fresh:
            self._say(why="fresh")
            return None
        allowed = self.store.of_plan(self.order.since) if self.order.since else None
        why = ""
        for entry_id, entry in self.store.entries(self._key.name):
            if entry is None:
                drop(entry_id)
                why = "damaged"
            elif same_files(entry.reads, _with(made, entry, self._now(entry))):
                if allowed is not None and entry_id not in allowed:
                    why = "since"
                    continue
                try:
                    self._recreation.check(entry.outputs)
                except Unusable as reason:
                    why = str(reason)
                    continue
                return entry_id, entry
        self._explain(self._key, why)
        return None

    def _take(self, entry_id: str, entry: Entry) -> None:
        self._recreation.make(entry.outputs, entry.value)
        call = self.context.call
        self.context.files_read |= {path: stamp for path, stamp in entry.reads.items() if stamp and not entry.listed}
        for path in entry.noted:
            collect(self.context, path)
        self.store.used(entry_id)
        self.store.add_to_plan(call.plan_id, entry_id)
        self.store.put_last(self._place, entry.model_copy(update={"plan_id": call.plan_id, "step_id": call.step_id}))

    def _keep(self, key: CallKey, kept: Any, text: str) -> None:
        context, call, large = self.context, self.context.call, isinstance(kept, LargeValue)
        self._check_kept()
        entry = Entry(
            key=key.name,
            tool=key.tool,
            environment=key.environment,
            arguments=key.arguments,
            reads=self._read(),
            listed=self._listed is not None,
            noted=context.files_noted,
            outputs=left(context, self.store.contents, context.ended, context.files_written),
            value=None if large else kept,
            large=kept if large else None,
            text=text,
            plan_id=call.plan_id,
            step_id=call.step_id,
            made=datetime.now(UTC),
        )
        self.store.add_to_plan(call.plan_id, self.store.put(entry))
        self.store.put_last(self._place, entry)

    def _check_kept(self) -> None:
        """Raise Unkept if the result cannot be taken exactly."""
        context = self.context
        if context.files_deleted or context.files_missing:
            raise Unkept("it deleted files")
        if context.files_shared or context.more_files:
            raise Unkept("which files it changed is not known exactly")
        if context.warnings and self.tool.is_opaque:
            raise Unkept("it ended with a warning")
        if len(context.files_read) > MAX_FILES:
            raise Unkept(f"it read more than {MAX_FILES} files")
        if self._listed is not None and not same_files(self._listed, listed(context.workspace, self.order.reads or [])):
            raise Unkept("files that it reads were changed while it ran")
        if any(path in context.files_written for path in self._read()):
            raise Unkept("it changes a file that it reads")

    def _read(self) -> dict[str, Stamp | None]:
        if self._listed is not None:
            return self._listed
        absent = dict.fromkeys(path for path in self.context.files_absent if path not in self.context.files_written)
        return {**absent, **self.context.files_read}

    def _now(self, entry: Entry) -> dict[str, Stamp | None]:
        """The files that an earlier call depended on, as they are."""
        return stamps_now(self.context.workspace, entry.reads) if self._listed is None else self._listed

    def _explain(self, key: CallKey, why: str) -> None:
        last = None if why else self.store.last(self._place)
        if last is None:
            self.note = CacheNote(why=why or "first")
            return
        note = compared(last, key, self._now(last))
        self.note = note if note.why else note.model_copy(update={"why": "gone"})

    def _around(self) -> dict[str, str]:
        """What else the result depends on: of a tool that may do anything, its directory; of commands, variables."""
        found = {"workspace": self.context.workspace.root} if self.tool.is_opaque else {}
        if self.tool.spec.name in TRACED:
            given = environment(os.environ, "", {})
            found |= {name: value for name, value in given.items() if name not in _NOT_OF_RESULTS}
        return found

    @property
    def _place(self) -> str:
        """Where in which plan the call stands: what its earlier runs have in common."""
        return digest(self.store.secret, "place", self.order.title, self.context.call.step_id, self.tool.spec.name)

    @property
    def _recreation(self) -> Recreation:
        return Recreation(self.context, self.store.contents, self.tool.spec.effect == "keyed")

    def _say(self, **fields: Any) -> None:
        self.note = self.note.model_copy(update=fields)


def _with(made: Mapping[str, Output], entry: Entry, now: dict[str, Stamp | None]) -> dict[str, Stamp | None]:
    """The files that an entry depends on as they will be, once those of `made` are re-created."""
    will_be = dict(now)
    for path in made.keys() & now.keys():
        before = entry.reads.get(path)
        will_be[path] = before if before is not None and before.hash == made[path].hash else None
    return will_be


def _as_json(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the hash of a stored text in its place."""
    return {
        name: {"$stored": value.stream.sha256} if isinstance(value, StoredText) else value
        for name, value in args.items()
    }
