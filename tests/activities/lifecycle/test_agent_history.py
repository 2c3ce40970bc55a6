"""The store of agent runs: valid whatever happens to its writers, mended when it is not, no entry lost."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.lifecycle.agent_history import AgentHistory, AgentTracker, HistoryWriteFailed
from plans.agents.history import AgentEvent, Entry, History
from plans.agents.history_file import read_history, run_summary
from tests.nightly import only_nightly

ROOT = Path(__file__).parent.parent.parent.parent
EXAMPLE = (ROOT / "tests/plans/golden/agent-history.json").read_text(encoding="utf-8")
NOON = datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC)
WRITER = """
import sys
from datetime import UTC, datetime
from itertools import count
from activities.lifecycle.agent_history import AgentHistory
from plans.agents.history import AgentEvent
from tests.nightly import only_nightly
store, name, times = AgentHistory(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(times) if times else count():
    event = AgentEvent(kind="spawned", agent_id=f"{name}-{number}", time=datetime.now(UTC), task_group="x")
    store.record(event)
    if not times:
        store.record(event.model_copy(update={"kind": "completed", "time": datetime.now(UTC)}))
"""


@pytest.fixture
def store(state_dir: Path) -> AgentHistory:
    """A store in an empty directory."""
    return AgentHistory(state_dir)


def event(kind: Any, agent_id: str, minute: int = 0, **fields: str) -> AgentEvent:
    """Something that happened to a run."""
    return AgentEvent(kind=kind, agent_id=agent_id, time=NOON + timedelta(minutes=minute), **fields)


def on_disk(store: AgentHistory) -> History:
    """The history in the file, which must be valid."""
    found = read_history(store.path.read_bytes())
    assert isinstance(found, History), found
    return found


def kept_aside(store: AgentHistory) -> list[Path]:
    """Files that could not be read."""
    return sorted(store.directory.glob("agent-history.json.corrupt-*"))


def writer(store: AgentHistory, name: str, times: int) -> subprocess.Popen[bytes]:
    """A process that records runs; for ever with `times` 0."""
    command = [sys.executable, "-c", WRITER, str(store.directory), name, str(times)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_a_missing_file_is_made_from_the_template(store: AgentHistory) -> None:
    assert store.read() == (History(), "")
    assert json.loads(store.path.read_text()) == {"version": "1.0", "max_entries": 50, "entries": []}


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    store = AgentHistory(tmp_path / "not" / "yet")
    store.record(event("spawned", "a"))
    assert on_disk(store).entries[0].agent_id == "a"


def test_the_files_are_their_owners_only(store: AgentHistory) -> None:
    store.record(event("spawned", "a"))
    for path in (store.path, store.current_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_run_is_current_until_it_ends(store: AgentHistory) -> None:
    store.record(event("spawned", "a"))
    active = store.active()
    assert store.current_path.read_text() == "a"
    assert active is not None
    assert active.agent_id == "a"
    store.record(event("completed", "a", 1))
    assert not store.current_path.exists()
    assert store.active() is None


def test_an_interrupted_run_stays_current_until_it_is_resumed(store: AgentHistory) -> None:
    store.record(event("spawned", "a"))
    store.record(event("interrupted", "a", 1))
    assert store.current_path.read_text() == "a"
    resumable = store.resumable()
    assert resumable is not None
    assert resumable.agent_id == "a"
    store.record(event("resumed", "b", 2, resumes="a"))
    assert store.current_path.read_text() == "b"
    assert [(entry.status, entry.resumed_by) for entry in store.read().history.entries] == [
        ("resumed", "b"),
        ("spawned", None),
    ]


def test_the_end_of_one_run_leaves_another_current(store: AgentHistory) -> None:
    store.record(event("spawned", "a"))
    store.record(event("spawned", "b", 1))
    store.record(event("completed", "a", 2))
    assert store.current_path.read_text() == "b"


def test_a_current_file_that_names_nobody_means_no_active_run(store: AgentHistory) -> None:
    store.current_path.write_text("nobody")
    assert store.active() is None
    store.current_path.write_bytes(b"\xff")
    assert store.active() is None


def test_the_example_file_is_used_as_it_is(store: AgentHistory) -> None:
    store.path.write_text(EXAMPLE)
    assert [entry.agent_id for entry in store.of_plan("03")] == ["b7134aa", "c9245bb"]
    assert store.path.read_text() == EXAMPLE


def test_duplicate_ids_are_told_apart_by_time(store: AgentHistory) -> None:
    store.record(event("spawned", "a", 5))
    store.record(event("spawned", "a", 1))
    store.record(event("failed", "a", 6))
    assert [(entry.timestamp[14:16], entry.status) for entry in on_disk(store).entries] == [
        ("05", "failed"),
        ("01", "spawned"),
    ]


def damaged(change: dict[str, Any]) -> str:
    """The example with something else in its first entry."""
    data = json.loads(EXAMPLE)
    data["entries"][0] |= change
    return json.dumps(data)


@pytest.mark.parametrize(
    ("content", "saved"),
    [
        ("", []),
        (EXAMPLE[: len(EXAMPLE) // 2], []),
        (EXAMPLE + EXAMPLE, []),
        (EXAMPLE.replace('"version": "1.0"', '"version": "9"'), []),
        ('{"version": "1.0", "max_entries": 50, "entries": null}', []),
        (damaged({"timestamp": "noon"}), ["b7134aa", "c9245bb"]),
        (damaged({"status": "happy"}), ["b7134aa", "c9245bb"]),
        (EXAMPLE.replace("}\n  ]", "}" + ',{"agent_id": "x"}' * 1_000_000 + "\n  ]"), []),
    ],
    ids=["empty", "truncated", "two objects", "version", "no entries", "bad time", "bad status", "a million entries"],
)
def test_an_unreadable_file_is_kept_aside_and_recovered(store: AgentHistory, content: str, saved: list[str]) -> None:
    store.path.write_text(content)
    run = Entry(
        agent_id="from-summary",
        agent_type="general-purpose",
        task_description="Tidy up",
        timestamp="2026-01-01T00:00:00Z",
        status="completed",
        completion_timestamp="2026-01-01T00:01:00Z",
    )
    for name, text in {"from-summary": run_summary(run, "completed"), "other": "no summary of ours"}.items():
        folder = store.directory / "runs" / name
        folder.mkdir(parents=True)
        (folder / "SUMMARY.md").write_text(text)
    history, warning = store.read()
    assert [entry.agent_id for entry in history.entries] == ["from-summary", *saved]
    assert history.entries[0] == run
    assert "could not be read" in warning
    assert [path.read_text() for path in kept_aside(store)] == [content]
    assert on_disk(store) == history
    assert store.read() == (history, "")
    assert len(kept_aside(store)) == 1


@pytest.mark.parametrize("kind", ["directory", "pipe"])
def test_something_else_than_a_file_is_moved_out_of_the_way(store: AgentHistory, kind: str) -> None:
    if kind == "directory":
        (store.path / "inside").mkdir(parents=True)
    else:
        os.mkfifo(store.path)
    update = store.record(event("spawned", "a"))
    assert "not a regular file" in update.warning
    assert len(on_disk(store).entries) == 1
    assert len(kept_aside(store)) == 1


def test_a_change_and_a_recovery_happen_in_one_step(store: AgentHistory) -> None:
    store.path.write_text(damaged({"status": "happy"}))
    update = store.record(event("spawned", "new", 10_000))
    assert [entry.agent_id for entry in update.history.entries] == ["b7134aa", "c9245bb", "new"]


def test_what_killed_writers_left_is_swept(store: AgentHistory) -> None:
    stale = store.directory / ".agent-history-abc.tmp"
    stale.write_text("half")
    store.record(event("spawned", "a"))
    assert not stale.exists()


def test_a_history_from_the_servers_record_takes_the_files_place(store: AgentHistory) -> None:
    store.path.write_text(EXAMPLE)
    entries = store.read().history.entries
    store.replace(entries[:0:-1])
    assert [entry.agent_id for entry in on_disk(store).entries] == ["b7134aa", "c9245bb"]


@contextmanager
def unwritable(directory: Path) -> Iterator[None]:
    """Make it impossible to write into a directory, also for root: something else has its lock's name."""
    (directory / ".agent-history.lock").unlink(missing_ok=True)
    (directory / ".agent-history.lock").mkdir()
    try:
        yield
    finally:
        (directory / ".agent-history.lock").rmdir()


def test_a_failing_write_ends_in_an_error_and_the_caller_goes_on(store: AgentHistory) -> None:
    store.path.write_text(EXAMPLE)
    with unwritable(store.directory):
        with pytest.raises(HistoryWriteFailed, match="3 attempts") as caught:
            store.record(event("spawned", "a"))
        assert caught.value.code == "HISTORY_WRITE_FAILED"
        warning = AgentTracker(store).track_agent(event("spawned", "a"))
        assert warning.startswith("HISTORY_WRITE_FAILED: ")
        assert len(store.read().history.entries) == 3
    assert store.path.read_text() == EXAMPLE
    assert AgentTracker(store).track_agent(event("spawned", "a")) == ""


def test_an_unwritable_directory_still_gives_the_template(store: AgentHistory) -> None:
    with unwritable(store.directory):
        history, warning = store.read()
    assert history == History()
    assert "could not be written" in warning


def test_a_lock_that_is_never_given_back_is_not_waited_for_for_ever(store: AgentHistory) -> None:
    impatient = AgentHistory(store.directory, lock_seconds=0.1)
    with store._locked(), pytest.raises(HistoryWriteFailed, match="held its lock"):
        impatient.record(event("spawned", "a"))
    impatient.record(event("spawned", "a"))


class Unlocked(AgentHistory):
    """The control: a store without its lock."""

    @contextmanager
    def _locked(self) -> Iterator[None]:
        yield


def test_a_second_writer_waits_and_without_the_lock_an_entry_is_lost(tmp_path: Path) -> None:
    for kind in (AgentHistory, Unlocked):
        store, other = kind(tmp_path / kind.__name__), kind(tmp_path / kind.__name__, lock_seconds=0.05)
        store.directory.mkdir()
        refused: list[str] = []

        def change(history: History) -> History:
            try:
                other.record(event("spawned", "second"))  # noqa: B023
            except HistoryWriteFailed as error:
                refused.append(error.message)  # noqa: B023
            return History(entries=[*history.entries, entry_of("first")])

        store.update(change)
        lost = {"first"} == {entry.agent_id for entry in on_disk(store).entries} and not refused
        assert lost is (kind is Unlocked)


def entry_of(name: str) -> Entry:
    """A run in progress."""
    time = NOON.isoformat()
    return Entry(agent_id=name, task_description="x", timestamp=time, status="spawned", completion_timestamp=None)


@pytest.mark.parametrize(("writers", "runs"), [(3, 15), only_nightly(8, 50)])
def test_writers_at_once_lose_nothing(store: AgentHistory, writers: int, runs: int) -> None:
    store.path.write_text('{"version": "1.0", "max_entries": 1000, "entries": []}')
    processes = [writer(store, f"w{number}", runs) for number in range(writers)]
    assert [process.wait(180) for process in processes] == [0] * writers
    names = {entry.agent_id for entry in on_disk(store).entries}
    assert names == {f"w{number}-{run}" for number in range(writers) for run in range(runs)}


@pytest.mark.parametrize("kills", [3, only_nightly(12)])
def test_killed_writers_never_leave_an_invalid_file(store: AgentHistory, kills: int) -> None:
    chance = random.Random(7)
    store.read()
    for number in range(kills):
        process = writer(store, f"k{number}", 0)
        try:
            wait_for_run_of(store, f"k{number}")
            time.sleep(chance.uniform(0, 0.02))  # the random moment of the kill, not a wait
        finally:
            process.kill()
            process.wait()
        assert on_disk(store).entries
    store.record(event("spawned", "last"))
    assert kept_aside(store) == []
    assert sorted(path.name for path in store.directory.iterdir()) == [
        ".agent-history.lock",
        "agent-history.json",
        "current-agent-id.txt",
    ]


def wait_for_run_of(store: AgentHistory, name: str) -> None:
    """Until the writer of that name has recorded something; the file must be valid at every look."""
    deadline = time.monotonic() + 90
    while not any(entry.agent_id.startswith(f"{name}-") for entry in on_disk(store).entries):
        assert time.monotonic() < deadline, "the writer records nothing"
        time.sleep(0.005)
