"""Takes checkpoints of a plan's directory, and restores one into a new directory.

A checkpoint holds the files and the effects that the effect log has of the plan's calls: a call that is repeated at
another host recognises what it has done already. It is taken while no file tool of the plan changes anything, with the
lock of the directory, so that an effect is in it with its file, or neither is. Commands that run meanwhile are not
stopped: what they have written so far may be in it, as after any kill of a worker.

What is stored goes to the storage of values, by content, and is encrypted where that is. The object that the plan
refers to names all others, so that `plan prune` finds them.

A checkpoint follows every step that may change files; at intervals, completed steps would be lost. One of a thousand
files of which one changed costs three small objects.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from plansurvive.activities.workspace import effect_recovery
from plansurvive.activities.workspace.effect_log import Effect, Effects
from plansurvive.activities.workspace.locks import TREE_SECONDS, tree_lock
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.features.hosts.homes import Home, Record
from plansurvive.features.hosts.listing import FAILED, too_large, walk
from plansurvive.features.hosts.packing import MAX_PACKS, Claim, Packer, Row, plain, without_small
from plansurvive.features.hosts.unpacking import Unpacker, rows_of
from plansurvive.plans.errors import ToolError
from plansurvive.plans.hosts.host import Checkpoint
from plansurvive.runtime.base import wait
from plansurvive.runtime.value_store import ValueStore

FORM, THREADS = 1, 4
T = TypeVar("T")
TRIES, PAUSE = 5, 1.0
"""Attempts to store a checkpoint before the step's own attempt fails; seconds after the first, then twice as many."""
_OF_EFFECT = ("key", "kind", "path", "temporary", "before", "after", "size", "value", "state")


@dataclass(frozen=True)
class Checkpoints:
    """Takes and restores the checkpoints of one host."""

    values: ValueStore
    effects: Effects
    most_bytes: int
    """PLANS_CHECKPOINT_MB, in bytes."""
    most_packs: int = MAX_PACKS
    # Threads of its own: each waits for the storage, which works in the threads that all share.
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "checkpoint"))

    async def take(self, home: Home, workflow_id: str = "") -> Checkpoint | None:
        """A checkpoint of the directory as it is; the last one if nothing has changed since. None: there is nothing.

        `workflow_id`: whose call was made, the plan's or that of an agent or plan in it: its effects are in this
        checkpoint and all later ones. Raises ToolError: CHECKPOINT_TOO_LARGE, or CHECKPOINT_FAILED when it cannot be
        stored.
        """
        for attempt in range(1, TRIES + 1):
            try:
                async with wait.locked_async(tree_lock(self.effects.locks, str(home.path)), TREE_SECONDS):
                    return await self._apart(self._take, home, workflow_id)
            except (OSError, RuntimeError) as error:
                if attempt == TRIES:
                    text = f"the checkpoint of the plan's files could not be stored: {error}"
                    raise ToolError(FAILED, text, retryable=True) from error
            await asyncio.sleep(PAUSE * 2 ** (attempt - 1))
        raise AssertionError

    async def restore(self, checkpoint: Checkpoint, home: Home, workflow_id: str) -> None:
        """Restore a checkpoint into a new directory, with its effects. Raises ToolError, or OSError for a later try."""
        await self._apart(self._restore, checkpoint, home, workflow_id)

    def open(self, home: Home) -> None:
        """Make the lock of a new directory, so that file tools know that checkpoints are taken of it."""
        lock = tree_lock(self.effects.locks, str(home.path))
        lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.touch(mode=0o600)

    async def _apart(self, work: Callable[..., T], *arguments: object) -> T:
        """Work that blocks, in a thread that is waited for even if this call is cancelled: it holds a lock."""
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self.threads, partial(work, *arguments, _Storing(self.values, loop)))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait([done])
            raise

    def _take(self, home: Home, workflow_id: str, storing: _Storing) -> Checkpoint | None:
        record = home.read()
        if workflow_id and workflow_id not in (record.workflow_id, *record.children):
            record.children.append(workflow_id)
        effects = self._effects(record, home)
        packer = Packer(storing.put, without_small(record.files, self.most_packs), record.packs, self.most_bytes)
        for found in walk(str(home.path)):
            packer.add(found)
        packs, known = packer.finish(), plain(packer.rows)
        text = json.dumps(effects)
        digest = hashlib.sha256(text.encode()).hexdigest()
        before = record.checkpoint
        if _same(known, record.files) and digest == record.effects:
            return before
        content = {"files": known, "effects": effects, "children": record.children}
        body = storing.put(zlib.compress(json.dumps(content).encode(), 1))
        root = {"form": FORM, "body": body, "packs": packs}
        number = before.number + 1 if before and before.token == home.token else 1
        checkpoint = Checkpoint(
            claim=storing.put(json.dumps(root).encode()), number=number, token=home.token, files=len(known),
            bytes=packer.bytes,
        )  # fmt: skip
        home.write(Record(record.workflow_id, checkpoint, packer.rows, packs, digest, record.children))
        return checkpoint

    def _effects(self, record: Record, home: Home) -> list[dict[str, Any]]:
        """The effects in the directory, of the plan and of what it runs. What a dead worker left open is settled."""
        log, root = self.effects.log, str(home.path)
        if not log.path.exists():
            return []
        names = (record.workflow_id, *record.children)
        for each in (effect for name in names for effect in log.of_calls(name)):
            if each.state == "open" and each.kind != "call" and each.workspace == root:
                with suppress(ToolError), Workspace(root).recorded(each.path) as place:
                    effect_recovery.settle(log, root, place)
        found = [each for name in names for each in log.of_calls(name) if each.workspace in ("", root)]
        return [{name: getattr(each, name) for name in _OF_EFFECT} for each in found]

    def _restore(self, checkpoint: Checkpoint, home: Home, workflow_id: str, storing: _Storing) -> None:
        root = json.loads(storing.get(checkpoint.claim))
        if root.get("form") != FORM:
            text = f"the checkpoint has format {root.get('form')!r}; a newer version of this program wrote it"
            raise ToolError(FAILED, text)
        body = json.loads(zlib.decompress(storing.get(root["body"])))
        rows: dict[str, Row] = rows_of(body["files"])
        if sum(row[3] for row in rows.values()) > self.most_bytes:
            raise too_large(f"more than {self.most_bytes // 1024 // 1024:,} MiB in its checkpoint")
        self.open(home)
        Unpacker(home.path, rows).unpack(root["packs"], storing.get)
        effects = [Effect(workspace=_place(each, home), **each) for each in body["effects"]]
        if effects:
            self.effects.log.take_over(effects)
        os.sync()  # a machine that stops now must not come back with half of the files
        digest = hashlib.sha256(json.dumps(body["effects"]).encode()).hexdigest()
        home.write(Record(workflow_id, checkpoint, rows, root["packs"], digest, body.get("children", [])))


def _place(effect: dict[str, Any], home: Home) -> str:
    return "" if effect["kind"] == "call" else str(home.path)


def _same(rows: dict[str, Row], known: dict[str, Row]) -> bool:
    """Whether nothing differs from the last checkpoint. Where a content is stored does not matter."""
    return rows.keys() == known.keys() and all(row[:5] == known[path][:5] for path, row in rows.items())


@dataclass(frozen=True)
class _Storing:
    """The storage of values, for a thread."""

    values: ValueStore
    loop: asyncio.AbstractEventLoop

    def put(self, data: bytes) -> Claim:
        return asyncio.run_coroutine_threadsafe(self.values.put_bytes(data), self.loop).result()

    def get(self, claim: Claim) -> bytes:
        return asyncio.run_coroutine_threadsafe(self.values.get_bytes(claim), self.loop).result()
