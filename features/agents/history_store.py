"""The store of agent runs: `agent-history.json` and `current-agent-id.txt` in a state directory, owner-only.

Each change is a read-modify-write under a lock on the directory, and files are replaced atomically: readers see the old
file or the new one, concurrent writers lose nothing, and the temporary file of a killed writer is removed by the next.
A missing file is created empty; an unreadable one is renamed to `.corrupt-<time>` and rebuilt from its valid entries
and the directory's SUMMARY.md files. If writing fails three times, HISTORY_WRITE_FAILED is raised; callers continue
without it, because the server's record of the runs is authoritative.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from temporalio import activity

from plansurvive.features.agents.history_file import (
    Damage,
    entry_of_summary,
    history_text,
    read_history,
    summary_with_successor,
)
from plansurvive.features.agents.model import history as agents
from plansurvive.features.agents.model.history import PLAN_TYPE, Entry, History, Status
from plansurvive.plans.activity_io import AgentEvent
from plansurvive.plans.definition.parsing import MAX_BYTES
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.base.wait import locked
from plansurvive.runtime.errors import KeyMissing, Unauthentic
from plansurvive.runtime.feature import sealing_of
from plansurvive.runtime.sealing import UNSEALED, Sealing
from plansurvive.runtime.settings import Settings

TRIES = 3
LOCK_SECONDS = 30.0
MAX_SUMMARIES = 1_000
SUMMARY_BYTES = 65_536
_TEMPORARY = ".agent-history-"
_LOG = logging.getLogger(__name__)


class HistoryWriteFailed(PlanError):
    """The history could not be written; the event is still in the server's record."""

    code = "HISTORY_WRITE_FAILED"


class Update(NamedTuple):
    """The history after a change, and a warning if the file had to be repaired or could not be read or written."""

    history: History
    warning: str = ""


class AgentHistory:
    """The history in `directory`. Blocking: call it from a thread. Waits at most `lock_seconds` for the lock."""

    def __init__(self, directory: Path | str, lock_seconds: float = LOCK_SECONDS, sealing: Sealing = UNSEALED) -> None:
        """`rest` encrypts what is written; what was written before there were keys is read as it is."""
        self.directory, self._sealing = Path(directory), sealing
        self.path = self.directory / "agent-history.json"
        self.current_path = self.directory / "current-agent-id.txt"
        self.lock_seconds = lock_seconds

    def record(self, event: AgentEvent) -> Update:
        """Record an event. A run that starts or resumes becomes the current one; when it ends, the newest in progress.

        An interrupted run stays current, so that it can be resumed. Raises HistoryWriteFailed.
        """
        begins, ends = event.kind in ("spawned", "resumed"), event.kind in ("completed", "failed", "timeout")
        update = self.update(
            lambda history: agents.applied(history, event),
            current=event.agent_id if begins else "",
            ended=[event.agent_id] if ends else [],
        )
        if event.kind == "resumed":
            self._note_in_summary(event.resumes, event.agent_id)
        return update

    def read(self) -> Update:
        """The history. A missing or unreadable file is rebuilt first, in memory only if it cannot be written."""
        loaded: History | Damage | None = None
        try:
            loaded = self._load()
            return Update(loaded) if isinstance(loaded, History) else self.update(lambda history: history)
        except HistoryWriteFailed as error:
            return Update(self._rebuilt(loaded), error.message)
        except OSError as error:
            return Update(History(), f"{self.path} could not be read: {error.strerror}; check its permissions")

    def active(self) -> list[Entry]:
        """The runs in progress, the newest first; that is the one which current-agent-id.txt names."""
        return agents.active(self.read().history)

    def resumable(self) -> Entry | None:
        """The most recent run that was interrupted, or has no recorded end, and was not resumed."""
        return agents.resumable(self.read().history)

    def of_plan(self, plan: str) -> list[Entry]:
        """The runs of one plan, oldest first."""
        return agents.of_plan(self.read().history, plan)

    def replace(self, entries: list[Entry]) -> Update:
        """Replace the history by one rebuilt from the server's record. Raises HistoryWriteFailed."""
        return self.update(lambda history: agents.rebuilt(entries, history.max_entries))

    def settle(self, ends: Sequence[tuple[str, Status, datetime]]) -> Update:
        """Record ends that only the server knows, such as those of terminated runs. Raises HistoryWriteFailed."""
        gone = [name for name, status, _ in ends if status in ("completed", "failed", "timeout")]
        return self.update(lambda history: agents.settled(history, ends), ended=gone)

    def update(self, change: Callable[[History], History], current: str = "", ended: Collection[str] = ()) -> Update:
        """Apply a change under the lock. Raises HistoryWriteFailed after three attempts.

        `current`: the run that becomes the current one. `ended`: those that are not current any more.
        """
        failure: OSError | None = None
        for attempt in range(TRIES):
            time.sleep(0.05 * attempt)
            try:
                with self._locked():
                    return self._updated(change, current, ended)
            except OSError as error:
                failure = error
        reason = failure.strerror if failure and failure.strerror else str(failure)
        raise HistoryWriteFailed(
            f"the agent history in {self.directory} could not be written ({TRIES} attempts): {reason}; fix the"
            " directory, then rebuild the history with `plan history --rebuild`"
        )

    def _updated(self, change: Callable[[History], History], current: str, ended: Collection[str]) -> Update:
        self._sweep()
        loaded, warning = self._load(), ""
        history = self._rebuilt(loaded)
        if isinstance(loaded, Damage):
            warning = self._set_aside(loaded)
        changed = change(history)
        if changed != loaded:
            write_whole(self.path, self._sealing.text(history_text(changed)).encode(), _TEMPORARY)
        if not current and ended and self._current() in ("", *ended):
            running = agents.active(changed)
            current = running[0].agent_id if running else ""
            if not current:
                self.current_path.unlink(missing_ok=True)
        if current:
            write_whole(self.current_path, current.encode(), _TEMPORARY)
        return Update(changed, warning)

    def _load(self) -> History | Damage | None:
        """The history in the file; Damage if it cannot be parsed; None if it is missing."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Damage(reason="it is not a regular file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return self._parsed(file.read(2 * MAX_BYTES))
        finally:
            os.close(descriptor)

    def _parsed(self, data: bytes) -> History | Damage:
        """The history in a file. Raises KeyMissing: a key that is not here yet is no damage."""
        try:
            text = self._sealing.plain(data.decode())
        except UnicodeDecodeError:
            return read_history(data)
        except Unauthentic as error:
            return Damage(reason=error.message)
        return read_history(text.encode())

    def _rebuilt(self, loaded: History | Damage | None) -> History:
        if isinstance(loaded, History):
            return loaded
        if loaded is None:
            return History()
        known = {entry.agent_id for entry in loaded.saved}
        return agents.rebuilt([*loaded.saved, *(entry for entry in self._summarized() if entry.agent_id not in known)])

    def _summarized(self) -> Iterator[Entry]:
        """The runs of agents whose SUMMARY.md files can be parsed; plans have such files, too, and no place here."""
        for path in sorted(self.directory.glob("runs/*/SUMMARY.md"))[:MAX_SUMMARIES]:
            with suppress(OSError, PlanError), path.open("rb") as file:
                text = file.read(MAX_BYTES).decode(errors="replace")
                entry = entry_of_summary(self._sealing.plain(text)[:SUMMARY_BYTES])
                if entry is not None and entry.agent_type != PLAN_TYPE:
                    yield entry

    def _note_in_summary(self, agent_id: str, resumed_by: str) -> None:
        """Say in the SUMMARY.md of a run which other resumed it: a history rebuilt from these files knows it then."""
        path = self.directory / "runs" / Path(agent_id).name / "SUMMARY.md"
        with suppress(OSError, UnicodeDecodeError, PlanError):
            if path.stat().st_size <= MAX_BYTES:
                text = self._sealing.plain(path.read_bytes().decode())
                write_whole(path, self._sealing.text(summary_with_successor(text, resumed_by)).encode(), ".summary-")

    def _set_aside(self, damage: Damage) -> str:
        """Save the damaged file as `.corrupt-<time>`; returns a warning.

        A hard link rather than a rename: the original name exists until the file is replaced.
        """
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        aside = self.path.with_name(f"{self.path.name}.corrupt-{moment}")
        if not any(other.samefile(self.path) for other in self.directory.glob(f"{self.path.name}.corrupt-*")):
            if self.path.is_file():
                os.link(self.path, aside)
            else:
                self.path.rename(aside)
        warning = (
            f"{self.path} could not be read: {damage.reason}; it was saved as {aside.name}, and the history rebuilt"
            f" from its {len(damage.saved)} valid entries and the SUMMARY.md files"
        )
        _LOG.warning(warning)
        return warning

    def _current(self) -> str:
        """The id in current-agent-id.txt; empty without one."""
        try:
            return self.current_path.read_text(encoding="utf-8")[:1_000].strip()
        except (OSError, UnicodeDecodeError):
            return ""

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(self.directory / ".agent-history.lock", self.lock_seconds / TRIES):
            yield

    def _sweep(self) -> None:
        """Remove temporary files of killed writers; safe, because only the holder of the lock writes."""
        for path in self.directory.glob(f"{_TEMPORARY}*.tmp"):
            with suppress(OSError):
                path.unlink()


def history_store(settings: Settings) -> AgentHistory:
    """The history in the settings' state directory. Raises SettingError for a bad key ring."""
    return AgentHistory(settings.state_dir, sealing=sealing_of(settings))


@dataclass(frozen=True)
class AgentTracker:
    """The activity `track_agent`: records the start, end, interruption or resumption of a run in the history.

    It never fails a run: a write error is returned as a warning for the run's log. It is idempotent.
    """

    history: AgentHistory

    @activity.defn(name="track_agent", no_thread_cancel_exception=True)
    def track_agent(self, event: AgentEvent) -> str:
        """Record the event; returns a warning, or an empty string."""
        try:
            return self.history.record(event).warning
        except (HistoryWriteFailed, KeyMissing) as error:
            return f"{error.code}: {error.message}"
