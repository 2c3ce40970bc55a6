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

from plansurvive.features.agents.history_file import read_history, run_summary
from plansurvive.features.agents.history_store import AgentHistory, AgentTracker, HistoryWriteFailed
from plansurvive.features.agents.model.history import Entry, History
from plansurvive.plans.activity_io import AgentEvent
from tests.nightly import only_nightly

ROOT = Path(__file__).parent.parent.parent.parent
EXAMPLE = (ROOT / "tests/features/agents/golden/agent-history.json").read_text(encoding="utf-8")
NOON = datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC)
WRITER = """
import sys
from datetime import UTC, datetime
from itertools import count
from plansurvive.features.agents.history_store import AgentHistory
from plansurvive.plans.activity_io import AgentEvent
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
    assert store.current_path.read_text() == "a"
    assert [entry.agent_id for entry in store.active()] == ["a"]
    store.record(event("completed", "a", 1))
    assert not store.current_path.exists()
    assert store.active() == []


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


def test_the_end_of_the_newer_of_two_agents_leaves_the_older_one_active(store: AgentHistory) -> None:
    store.record(event("spawned", "a"))
    store.record(event("spawned", "b", 1))
    assert [entry.agent_id for entry in store.active()] == ["b", "a"]
    store.record(event("completed", "b", 2))
    assert [entry.agent_id for entry in store.active()] == ["a"]
    assert store.current_path.read_text() == "a"
    store.record(event("interrupted", "a", 3))
    assert store.active() == []
    assert store.current_path.read_text() == "a"


def test_an_interrupted_run_stays_current_while_others_end(store: AgentHistory) -> None:
    store.record(event("spawned", "a"))
    store.record(event("spawned", "b", 1))
    store.record(event("interrupted", "b", 2))
    store.record(event("completed", "a", 3))
    assert store.current_path.read_text() == "b"
    assert store.active() == []


def test_a_current_file_that_nobody_can_read_is_written_anew(store: AgentHistory) -> None:
    store.record(event("spawned", "a"))
    store.current_path.write_bytes(b"\xff")
    assert [entry.agent_id for entry in store.active()] == ["a"]
    store.record(event("spawned", "b", 1))
    store.record(event("failed", "b", 2))
    assert store.current_path.read_text() == "a"


def test_what_the_server_knows_of_runs_in_progress_is_recorded(store: AgentHistory) -> None:
    for minute, name in enumerate(("a", "b", "c")):
        store.record(event("spawned", name, minute))
    later = NOON + timedelta(hours=1)
    update = store.settle([("c", "failed", later), ("b", "interrupted", later)])
    assert [(entry.agent_id, entry.status) for entry in on_disk(store).entries] == [
        ("a", "spawned"), ("b", "interrupted"), ("c", "failed"),
    ]  # fmt: skip
    assert update.history == on_disk(store)
    assert store.current_path.read_text() == "a"


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


def summary(store: AgentHistory, name: str, text: str) -> None:
    """The SUMMARY.md of a run."""
    folder = store.directory / "runs" / name
    folder.mkdir(parents=True)
    (folder / "SUMMARY.md").write_text(text)


def test_a_recovered_history_offers_no_run_that_was_resumed_and_has_no_plans(store: AgentHistory) -> None:
    """Neither by its successor's summary, nor, while that still runs, by its own."""
    for minute, name in enumerate(("one", "two", "lost")):
        store.record(event("spawned", name, minute))
        store.record(event("failed" if name == "lost" else "interrupted", name, minute))
        found = on_disk(store).entries[-1]
        summary(store, name, run_summary(found, found.status, "## Result\n\nnothing"))
    store.record(event("resumed", "one-r2", 5, resumes="one"))
    store.record(event("completed", "one-r2", 6))
    summary(store, "one-r2", run_summary(on_disk(store).entries[-1], "completed"))
    (store.directory / "runs/one/SUMMARY.md").write_text(run_summary(on_disk(store).entries[0], "interrupted"))
    store.record(event("resumed", "two-r2", 7, resumes="two"))
    store.record(event("resumed", "lost-r2", 8, resumes="lost"))
    plan = (
        "# Notes\n\n- Plan: `p1`\n- Status: partial\n- Started: 2026-01-15T12:00:00Z\n- Ended: 2026-01-15T12:01:00Z\n"
    )
    summary(store, "p1", plan)
    store.path.write_text("{")
    history, warning = store.read()
    assert "could not be read" in warning
    assert [(each.agent_id, each.status, each.resumes, each.resumed_by) for each in history.entries] == [
        ("one", "resumed", None, "one-r2"),
        ("two", "resumed", None, "two-r2"),
        ("lost", "failed", None, "lost-r2"),
        ("one-r2", "completed", "one", None),
    ]
    assert store.resumable() is None


def test_a_note_in_a_summary_stays_in_its_directory(store: AgentHistory, tmp_path: Path) -> None:
    (tmp_path / "SUMMARY.md").write_text("# Outside\n")
    (store.directory / "runs").mkdir()
    store.record(event("resumed", "new", resumes="../.."))
    assert (tmp_path / "SUMMARY.md").read_text() == "# Outside\n"


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


FULL_DISK = """
import resource, signal, sys
from datetime import UTC, datetime
from plansurvive.features.agents.history_store import AgentHistory, AgentTracker
from plansurvive.plans.activity_io import AgentEvent
store, lasts = AgentHistory(sys.argv[1]), int(sys.argv[2])
event = AgentEvent(kind="spawned", agent_id="first", time=datetime.now(UTC))
store.record(event)
before, tries = store.path.read_bytes(), []
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def try_again(name, given):
    if name == "tempfile.mkstemp":
        tries.append(1)
        if len(tries) > lasts:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
sys.addaudithook(try_again)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
warning = AgentTracker(store).track_agent(event.model_copy(update={"agent_id": "second"}))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
left = [path.name for path in store.directory.glob(".agent-history-*.tmp")]
print(len(tries), store.path.read_bytes() == before, left, warning)
"""
"""The kernel refuses to write more than a byte, as on a full disk, until the given number of files was tried."""


def write_on_a_full_disk(store: AgentHistory, lasts: int) -> str:
    """What comes of recording a run while the first `lasts` files cannot be written."""
    command = [sys.executable, "-c", FULL_DISK, str(store.directory), str(lasts)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_write_that_fails_is_tried_three_times_and_leaves_the_file_as_it_was(store: AgentHistory) -> None:
    told = write_on_a_full_disk(store, lasts=100)
    assert told.startswith("3 True [] HISTORY_WRITE_FAILED: ")
    assert "(3 attempts): File too large" in told


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_write_that_fails_twice_succeeds_the_third_time(store: AgentHistory) -> None:
    told = write_on_a_full_disk(store, lasts=2)
    assert told in ("4 False []", "3 False []")  # the third file, and that of the current run
    assert [entry.agent_id for entry in on_disk(store).entries] == ["first", "second"]


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


@pytest.mark.slow
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
