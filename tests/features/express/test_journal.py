"""The journal of segments: what survives a kill, and which attempt may keep anything."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from plansurvive.features.express.journal import RETENTION_SECONDS, VERSION, Journal, Segment, Superseded
from plansurvive.features.keys.sealing import Encrypting
from tests.features.keys.rings import key, live, ring_file

SEGMENT = Segment("run-1", "segment-1")

WRITER = """
import sys
from pathlib import Path
from plansurvive.features.express.journal import Journal, Segment

journal, segment = Journal(Path(sys.argv[1])), Segment(*sys.argv[2:4])
journal.begin(segment, 1)
{before}
for number in range(1_000_000):
    journal.keep(segment, 1, {{f"step-{{number}}": str(number)}})
    print(number, flush=True)
"""
"""A worker that says of each step that it has ended once the journal has it, until it is killed."""
WITHOUT = "journal._connection.execute('BEGIN')"
"""Takes the journal out: nothing of what is kept becomes lasting."""


def lost(directory: Path, before: str = "") -> list[str]:
    """Kill a writer in the middle; the steps that had ended and that the next attempt does not know of."""
    command = [sys.executable, "-c", WRITER.format(before=before), str(directory), *SEGMENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        ended = [writer.stdout.readline().strip() for _ in range(200)]
        writer.kill()
        ended += writer.stdout.read().split("\n")[:-1]  # a number without an end of line was cut off by the kill
    assert ended[199] == "199"
    with Journal(directory) as journal:
        known = journal.begin(SEGMENT, 2)
    assert all(known[f"step-{number}"] == number for number in ended if f"step-{number}" in known)
    return [number for number in ended if f"step-{number}" not in known]


def test_what_had_ended_when_its_worker_was_killed_is_known_to_the_next_attempt(tmp_path: Path) -> None:
    assert lost(tmp_path) == []


def test_control_without_the_journal_all_of_it_is_lost(tmp_path: Path) -> None:
    assert len(lost(tmp_path, WITHOUT)) >= 200


def test_an_attempt_that_was_followed_by_another_keeps_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path) as zombie, Journal(tmp_path) as worker:
        assert zombie.begin(SEGMENT, 1) == {}
        zombie.keep(SEGMENT, 1, {"a": "1"})
        assert worker.begin(SEGMENT, 2) == {"a": "1"}
        with pytest.raises(Superseded, match="attempt 1 of segment segment-1"):
            zombie.keep(SEGMENT, 1, {"b": "2"})
        worker.keep(SEGMENT, 2, {"b": "3"})
        assert worker.begin(SEGMENT, 3) == {"a": "1", "b": "3"}


def test_an_attempt_that_begins_late_does_not_push_a_later_one_aside(tmp_path: Path) -> None:
    with Journal(tmp_path) as late, Journal(tmp_path) as worker:
        worker.begin(SEGMENT, 2)
        with pytest.raises(Superseded):
            late.begin(SEGMENT, 1)
        worker.keep(SEGMENT, 2, {"a": "1"})


def test_a_segment_that_never_began_keeps_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal, pytest.raises(Superseded):
        journal.keep(SEGMENT, 1, {"a": "1"})


@pytest.mark.parametrize("other", [Segment("run-2", "segment-1"), Segment("run-1", "segment-2")])
def test_a_run_that_was_reset_and_another_segment_read_nothing_of_it(tmp_path: Path, other: Segment) -> None:
    with Journal(tmp_path) as journal:
        journal.begin(SEGMENT, 1)
        journal.keep(SEGMENT, 1, {"a": "1"})
        assert journal.begin(other, 1) == {}
        journal.keep(other, 1, {"a": "2"})
        assert (journal.begin(SEGMENT, 2), journal.begin(other, 2)) == ({"a": "1"}, {"a": "2"})


def test_rows_of_segments_that_history_has_go_and_no_others(tmp_path: Path) -> None:
    settled, going, elsewhere = Segment("run-1", "s1"), Segment("run-1", "s2"), Segment("run-2", "s1")
    with Journal(tmp_path) as journal:
        for each in (settled, going, elsewhere):
            journal.begin(each, 1)
            journal.keep(each, 1, {"a": "1"})
        journal.begin(Segment("run-1", "s3"), 1, [settled.activity])
        assert [journal.begin(each, 2) for each in (settled, going, elsewhere)] == [{}, {"a": "1"}, {"a": "1"}]


def test_a_refused_attempt_removes_nothing(tmp_path: Path) -> None:
    earlier = Segment("run-1", "s1")
    with Journal(tmp_path) as journal:
        journal.begin(earlier, 1)
        journal.keep(earlier, 1, {"a": "1"})
        journal.begin(SEGMENT, 2)
        with pytest.raises(Superseded):
            journal.begin(SEGMENT, 1, [earlier.activity])
        assert journal.begin(earlier, 2) == {"a": "1"}


def test_old_rows_go_when_the_journal_is_opened(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        for each in (SEGMENT, Segment("run-2", "s1")):
            journal.begin(each, 1)
            journal.keep(each, 1, {"a": "1"})
    with sqlite3.connect(journal.path) as connection:
        connection.execute("UPDATE segments SET time = time - ? WHERE run = 'run-2'", (RETENTION_SECONDS + 1,))
    with Journal(tmp_path) as again:
        assert again.begin(SEGMENT, 2) == {"a": "1"}
        assert again.begin(Segment("run-2", "s1"), 2) == {}


def test_outcomes_are_encrypted_where_the_worker_has_a_key(tmp_path: Path) -> None:
    sealing = Encrypting(live(ring_file(tmp_path / "keys", key())))
    with Journal(tmp_path / "express", sealing) as journal:
        journal.begin(SEGMENT, 1)
        journal.keep(SEGMENT, 1, {"a": "canary-4711"})
        assert journal.begin(SEGMENT, 2) == {"a": "canary-4711"}
        files = list((tmp_path / "express").iterdir())
        assert not any(b"canary-4711" in each.read_bytes() for each in files)
        assert {each.stat().st_mode & 0o777 for each in files} == {0o600}


def test_a_journal_of_another_version_or_a_damaged_one_is_not_used(tmp_path: Path) -> None:
    Journal(tmp_path).close()
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(sqlite3.DatabaseError, match=f"has version {VERSION + 1}"):
        Journal(tmp_path)
    (tmp_path / "journal.db").write_bytes(b"not a database, and long enough to be looked at as one" * 40)
    with pytest.raises(sqlite3.DatabaseError):
        Journal(tmp_path)
