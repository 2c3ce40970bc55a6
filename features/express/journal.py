"""The journal of segments: what the steps of a segment gave, kept on disk as each one ends.

A segment whose worker dies is attempted again, and takes from here what had ended: on the same state directory no
finished step runs twice. SQLite (WAL, mode 0600) with synchronous=NORMAL: a row survives the death of any process, and
not a power cut, after which pure steps run again. What steps have changed is in the effect log, which survives both.

Rows are keyed by the workflow's run id, the activity id and the call, so that a run which was reset reads nothing of
the run before. Attempts of a segment are in order: one that has been given up may still be running (a zombie), and
keeps nothing from the moment that a later one begins.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from plansurvive.runtime.sealing import UNSEALED, Sealing

FOLDER = "express"
"""In the state directory."""
VERSION = 1
BUSY_SECONDS = 10.0
"""How long another process may have it locked; one that was stopped in the middle of a write keeps it."""
AGAIN = 0.005
"""Seconds between two looks whether it is free."""
RETENTION_SECONDS = 90 * 86_400.0
"""As for completed effects: rows of segments that were begun longer ago are deleted."""
_SCHEMA = (
    "CREATE TABLE segments (run TEXT, activity TEXT, attempt INTEGER NOT NULL, time REAL NOT NULL,"
    " PRIMARY KEY (run, activity)) WITHOUT ROWID",
    "CREATE TABLE outcomes (run TEXT, activity TEXT, call TEXT, outcome TEXT NOT NULL,"
    " PRIMARY KEY (run, activity, call)) WITHOUT ROWID",
    "CREATE INDEX by_time ON segments (time)",
    f"PRAGMA user_version = {VERSION}",
)
_KEEP = (
    "INSERT OR REPLACE INTO outcomes SELECT run, activity, column1, column2 FROM segments, (VALUES {})"
    " WHERE run = ? AND activity = ? AND attempt = ?"
)
T = TypeVar("T")
_OLD = "SELECT run, activity FROM segments WHERE time < ?"


class Segment(NamedTuple):
    """One segment of a plan, as Temporal names its activity."""

    run: str
    """Run id of the workflow."""
    activity: str
    """Activity id, the same for all attempts."""


class Superseded(RuntimeError):
    """A later attempt of the segment has begun: this one has to end, and what it does counts no more."""


class Journal:
    """The journal in a directory that all workers of a state directory share. For one thread at a time.

    Every method raises OSError or sqlite3.Error if the journal cannot be used; a segment then runs no step. Opening it
    waits for other processes, and belongs in a thread; nothing else does (`when_free`).
    """

    def __init__(self, directory: Path, sealing: Sealing = UNSEALED) -> None:
        """Opens the journal, and makes it if there is none. `sealing` encrypts outcomes."""
        self.path, self._sealing = directory / "journal.db", sealing
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        self._connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare()
            self._connection.execute("PRAGMA busy_timeout = 0")
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, segment: Segment, attempt: int, settled: Sequence[str] = ()) -> dict[str, str]:
        """Begin an attempt of a segment: the outcomes that earlier attempts have kept, by call.

        `settled`: activity ids of segments of the same run whose outcomes its history has; their rows go. Raises
        Superseded if a later attempt has begun.
        """
        with self._transaction() as connection:
            self._delete(Segment(segment.run, each) for each in settled if each != segment.activity)
            row = connection.execute("SELECT attempt FROM segments WHERE run = ? AND activity = ?", segment).fetchone()
            if row is not None and row[0] > attempt:
                raise Superseded(_why(segment, attempt))
            values = (*segment, attempt, time.time())
            connection.execute("INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?)", values)
            rows = connection.execute("SELECT call, outcome FROM outcomes WHERE run = ? AND activity = ?", segment)
            return {call: self._sealing.plain(outcome) for call, outcome in rows}

    def keep(self, segment: Segment, attempt: int, outcomes: Mapping[str, str]) -> None:
        """Keep what calls of the segment gave, by call; when this returns, it survives the process.

        Raises Superseded, and keeps nothing, if another attempt has begun since.
        """
        if not outcomes:
            return
        # One statement, and so one transaction: no attempt can begin between the look at its number and the rows.
        rows = [each for call, outcome in outcomes.items() for each in (call, self._sealing.text(outcome))]
        keep = _KEEP.format(", ".join(["(?, ?)"] * len(outcomes)))
        if self._connection.execute(keep, (*rows, *segment, attempt)).rowcount != len(outcomes):
            raise Superseded(_why(segment, attempt))

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        with self._transaction():
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in _SCHEMA:
                    connection.execute(statement)
            elif version != VERSION:
                raise sqlite3.DatabaseError(f"{self.path} has version {version}; this program needs {VERSION}")
            old = connection.execute(_OLD, (time.time() - RETENTION_SECONDS,)).fetchall()
            self._delete(Segment(*row) for row in old)

    def _delete(self, segments: Iterator[Segment]) -> None:
        for segment in segments:
            for table in ("outcomes", "segments"):
                self._connection.execute(f"DELETE FROM {table} WHERE run = ? AND activity = ?", segment)  # noqa: S608

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


async def when_free(use: Callable[[], T]) -> T:
    """Use a journal as soon as no other process has it locked, and do not block this one, in which other plans run.

    Raises sqlite3.OperationalError after BUSY_SECONDS, and what the function raises.
    """
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return use()
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() >= end:
                raise
        await asyncio.sleep(AGAIN)


def _why(segment: Segment, attempt: int) -> str:
    return f"attempt {attempt} of segment {segment.activity} of run {segment.run} was followed by another one"
