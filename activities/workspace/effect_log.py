"""The effect log, a write-ahead log of file changes: each effect happens exactly once, also when a worker is killed.

Each effect is a row: key of the call (the same for all its attempts), path, hashes before and after, temporary file,
state. The row is written before the effect and completed after it, in SQLite (WAL, synchronous=FULL, mode 0600) in the
state directory. A killed worker leaves an open row; the next call that locks the file recovers it first
(`activities.workspace.effect_recovery`). With a log that is missing, damaged, locked or of another version, effects are
refused (EFFECTS_UNAVAILABLE), and the error says how to repair the log.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from plansurvive.activities.workspace.content_store import ContentStore
from plansurvive.plans.errors import ToolError
from plansurvive.runtime.feature import sealing_of
from plansurvive.runtime.sealing import UNSEALED, Sealing
from plansurvive.runtime.settings import Settings

EFFECTS = "effects"
"""Name of the log's directory in the state directory."""
VERSION = 1
BUSY_SECONDS = 10.0
RETENTION_SECONDS = 90 * 86_400.0
"""Completed effects older than this are deleted."""

Kind = Literal["write", "delete", "directory", "call"]
State = Literal["open", "done", "failed", "doubt"]
_SCHEMA = (
    "CREATE TABLE effects (id INTEGER PRIMARY KEY, key TEXT NOT NULL, run TEXT NOT NULL, kind TEXT NOT NULL,"
    " workspace TEXT NOT NULL, path TEXT NOT NULL, temporary TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,"
    " size INTEGER NOT NULL, value TEXT NOT NULL, state TEXT NOT NULL, time REAL NOT NULL,"
    " UNIQUE (key, path))",
    "CREATE INDEX by_place ON effects (workspace, path, state)",
    f"PRAGMA user_version = {VERSION}",
)
_COLUMNS = "key, kind, workspace, path, temporary, before, after, size, value, state"

_INSERT = (
    f"INSERT OR REPLACE INTO effects (key, run, {_COLUMNS.removeprefix('key, ')}, time)"  # noqa: S608
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True)
class Effect:
    """One change of one file by one tool call. Kind `call`: the claim of a tool call that must not be repeated."""

    key: str
    kind: Kind
    workspace: str = ""
    path: str = ""
    """Real path, relative to the workspace."""
    temporary: str = ""
    before: str = ""
    """Hash of the content before; empty if the file did not exist."""
    after: str = ""
    size: int = 0
    value: Any = None
    """The tool's result."""
    state: State = "open"


class EffectLog:
    """The log in a directory, opened on first use. Safe to use from several threads and processes."""

    def __init__(self, directory: Path, busy_seconds: float = BUSY_SECONDS, sealing: Sealing = UNSEALED) -> None:
        """`sealing` encrypts results; calls, paths and hashes are readable, as they are looked up."""
        self._sealing = sealing
        self.path, self.marker = directory / "log.db", directory / "log.made"
        self._busy, self._lock = busy_seconds, threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    def find(self, key: str, path: str = "") -> Effect | None:
        """A call's effect on a file; without a path, the claim of a call that must not be repeated. None if unknown."""
        return next(iter(self._select("key = ? AND path = ?", key, path)), None)

    def open_at(self, workspace: str, path: str) -> list[Effect]:
        """Effects on a file that were begun but not completed."""
        return self._select("workspace = ? AND path = ? AND state = 'open' AND kind != 'call'", workspace, path)

    def leads(self, run: str, workspace: str, path: str, seen: str, now: str) -> bool:
        """Whether the run's own effects alone, applied in order, turn the content `seen` into the content `now`."""
        for effect in self._select("run = ? AND workspace = ? AND path = ? AND state = 'done'", run, workspace, path):
            if effect.before == seen:
                seen = effect.after
        return seen == now

    def of_workflow(self, workflow_id: str) -> list[tuple[Effect, float]]:
        """All completed changes of a workflow's calls, oldest first, each with its start time."""
        statement = f"SELECT {_COLUMNS}, time FROM effects WHERE key > ? AND key < ? AND state = 'done'"  # noqa: S608
        with self._opened() as connection:
            rows = connection.execute(
                f"{statement} AND kind != 'call' ORDER BY id", (f"{workflow_id}/", f"{workflow_id}0")
            )
            return [(self._effect(row[:-1]), float(row[-1])) for row in rows]

    def of_calls(self, workflow_id: str) -> list[Effect]:
        """All that is logged of a workflow's calls, open or not, oldest first: what a checkpoint of its files holds."""
        return self._select("key > ? AND key < ?", f"{workflow_id}/", f"{workflow_id}0")

    def take_over(self, effects: Sequence[Effect]) -> None:
        """Record effects that were logged at another host, as they are; on disk when this returns."""
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(_INSERT, [self._row(each) for each in effects])
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise

    def since(self, time: float) -> list[Effect]:
        """The changes begun since then (seconds since the epoch), of all workflows."""
        return self._select("time >= ? AND kind != 'call' AND state != 'failed'", time)

    def begin(self, effect: Effect) -> None:
        """Record an effect that is about to happen; on disk when this returns."""
        self._change(_INSERT, *self._row(effect))

    def settle(self, effect: Effect, state: State, value: Any = None) -> None:
        """Record the outcome: done, failed, or `doubt` when it cannot be determined. `value` replaces the result."""
        text = self._text(effect.value if value is None else value)
        where = (effect.key, effect.path)
        self._change("UPDATE effects SET state = ?, value = ? WHERE key = ? AND path = ?", state, text, *where)

    def forget(self, effect: Effect) -> None:
        """Delete the row of an effect that did not happen."""
        self._change("DELETE FROM effects WHERE key = ? AND path = ?", effect.key, effect.path)

    def check(self) -> None:
        """Raise ToolError EFFECTS_UNAVAILABLE if effects cannot be logged. Does not create the log."""
        if self.path.exists() or self.marker.exists():
            self._select("key = ''")

    def close(self) -> None:
        """Close the database; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _row(self, effect: Effect) -> tuple[Any, ...]:
        row = (effect.key, run_of(effect.key), effect.kind, effect.workspace, effect.path, effect.temporary)
        rest = (effect.before, effect.after, effect.size, self._text(effect.value), effect.state, time.time())
        return (*row, *rest)

    def _text(self, value: Any) -> str:
        return self._sealing.text(json.dumps(value)) if value is not None else "null"

    def _effect(self, row: Sequence[Any]) -> Effect:
        named = dict(zip(_COLUMNS.split(", "), row, strict=True))
        return Effect(**named | {"value": json.loads(self._sealing.plain(named["value"]))})

    def _select(self, condition: str, *values: Any) -> list[Effect]:
        with self._opened() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM effects WHERE {condition} ORDER BY id", values)  # noqa: S608
            return [self._effect(row) for row in rows]

    def _change(self, statement: str, *values: Any) -> None:
        with self._opened() as connection:
            connection.execute(statement, values)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._forget_if_replaced()
                if self._connection is None:
                    self._connection = self._open()
                yield self._connection
            except (sqlite3.Error, OSError, ValueError) as error:
                self.close()
                raise self._unavailable(error) from None

    def _forget_if_replaced(self) -> None:
        """Close the connection if the log was removed or replaced since it was opened."""
        if self._connection is not None and (not self.path.exists() or self.path.stat().st_ino != self._inode):
            self.close()

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        created = self.marker.exists()
        if created and (not self.path.exists() or not self.path.stat().st_size):
            raise sqlite3.DatabaseError("it was removed or emptied")
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        self.path.chmod(0o600)
        connection = sqlite3.connect(self.path, timeout=self._busy, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(connection, created)
        except BaseException:
            connection.close()
            raise
        self._inode = self.path.stat().st_ino
        return connection

    def _prepare(self, connection: sqlite3.Connection, created: bool) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise sqlite3.DatabaseError(problem)
        connection.execute("BEGIN IMMEDIATE")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not created:
            for statement in _SCHEMA:
                connection.execute(statement)
        elif version != VERSION:
            raise sqlite3.DatabaseError(f"it has version {version}; this program needs version {VERSION}")
        connection.execute("DELETE FROM effects WHERE state != 'open' AND time < ?", (time.time() - RETENTION_SECONDS,))
        connection.execute("COMMIT")
        self.marker.touch(mode=0o600)

    def _unavailable(self, error: Exception) -> ToolError:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            text = f"the effect log {self.path} cannot be written ({error}); free space on its disk"
            return ToolError("NO_SPACE", text, retryable=True)
        busy = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
        remedy = (
            "another program has locked it; close that program and try again"
            if busy
            else "fix its permissions or restore it from a backup; or stop the workers and move it and"
            f" '{self.marker.name}' away: a new log is then created, and an interrupted step may act twice"
        )
        text = f"the effect log {self.path} cannot be used ({error}), so no file was changed: {remedy}"
        return ToolError("EFFECTS_UNAVAILABLE", text, retryable=busy)


@dataclass(frozen=True)
class Effects:
    """What tools need to change files safely: the effect log, the directory of locks, the store of earlier contents."""

    log: EffectLog
    locks: Path
    preimages: ContentStore
    strict: bool = False
    """PLANS_EDITS=strict: files that the run has neither created nor read cannot be edited."""

    @classmethod
    def at(cls, directory: Path, *, strict: bool = False, sealing: Sealing = UNSEALED) -> Effects:
        """The log, locks and contents in a directory, which all workers of a workspace must share."""
        contents = ContentStore(directory / "contents", sealing=sealing)
        return cls(EffectLog(directory, sealing=sealing), directory / "locks", contents, strict)

    @classmethod
    def of(cls, settings: Settings) -> Effects:
        """Those of a worker with these settings. Raises SettingError."""
        return cls.at(settings.state_dir / EFFECTS, strict=settings.edits == "strict", sealing=sealing_of(settings))


def run_of(key: str) -> str:
    """The part of a call's key that is the same for all calls of a run."""
    return key.rpartition("/")[0]
