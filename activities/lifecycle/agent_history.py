"""The store of agent runs: `agent-history.json` and `current-agent-id.txt` in a state directory, for its owner only.

Every change is read, decided and written under a lock of the directory, and written whole: a reader sees the old file
or the new, a killed writer leaves a temporary file that the next one sweeps, two writers lose nothing. A missing file
is made from the template; an unreadable one is kept aside as `.corrupt-<time>` and made anew from its good entries and
the SUMMARY.md files of the directory. When nothing can be written, three tries end in HISTORY_WRITE_FAILED: callers go
on, for the server's record of the runs is the truth.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from temporalio import activity

from plans.agents import history as agents
from plans.agents.history import AgentEvent, Entry, History
from plans.agents.history_file import Damage, entry_of_summary, history_text, read_history
from plans.definition.parsing import MAX_BYTES
from plans.errors import PlanError
from runtime.atomic_file import write_whole
from runtime.wait import locked

TRIES = 3
LOCK_SECONDS = 30.0
MAX_SUMMARIES = 1_000
SUMMARY_BYTES = 65_536
_TEMPORARY = ".agent-history-"
_LOG = logging.getLogger(__name__)


class HistoryWriteFailed(PlanError):
    """The history could not be written; what was to be recorded is still in the server's record."""

    code = "HISTORY_WRITE_FAILED"


class Update(NamedTuple):
    """A history as it now is, and what had to be mended to get there."""

    history: History
    warning: str = ""


class AgentHistory:
    """The history kept in `directory`. Blocking: call it from a thread; others are waited for `lock_seconds`."""

    def __init__(self, directory: Path | str, lock_seconds: float = LOCK_SECONDS) -> None:
        self.directory = Path(directory)
        self.path = self.directory / "agent-history.json"
        self.current_path = self.directory / "current-agent-id.txt"
        self.lock_seconds = lock_seconds

    def record(self, event: AgentEvent) -> Update:
        """Record an event. A run that begins becomes the current one, one that ends by itself ceases to be it.

        An interrupted run stays the current one, so that it is found. Raises HistoryWriteFailed.
        """
        begins, ends = event.kind in ("spawned", "resumed"), event.kind in ("completed", "failed", "timeout")
        return self.update(
            lambda history: agents.applied(history, event),
            current=event.agent_id if begins else "",
            ended=event.agent_id if ends else "",
        )

    def read(self) -> Update:
        """The history; a missing or unreadable file is mended first, in memory alone where it cannot be written."""
        found: History | Damage | None = None
        try:
            found = self._load()
            return Update(found) if isinstance(found, History) else self.update(lambda history: history)
        except HistoryWriteFailed as error:
            return Update(self._mended(found), error.message)
        except OSError as error:
            return Update(History(), f"{self.path} could not be read: {error.strerror}; mend its permissions")

    def active(self) -> Entry | None:
        """The run that current-agent-id.txt names; none when there is no such file, or no such run."""
        try:
            name = self.current_path.read_text(encoding="utf-8")[:1_000]
        except (OSError, UnicodeDecodeError):
            return None
        return agents.active(self.read().history, name)

    def resumable(self) -> Entry | None:
        """The most recent run that was interrupted or never heard of again, and not resumed."""
        return agents.resumable(self.read().history)

    def of_plan(self, plan: str) -> list[Entry]:
        """The runs of one plan, in time order."""
        return agents.of_plan(self.read().history, plan)

    def replace(self, entries: list[Entry]) -> Update:
        """Put a history in place that was made from the server's record."""
        return self.update(lambda history: agents.rebuilt(entries, history.max_entries))

    def update(self, change: Callable[[History], History], current: str = "", ended: str = "") -> Update:
        """Apply a change under the lock. Raises HistoryWriteFailed after three tries."""
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
            f"the agent history in {self.directory} could not be written ({TRIES} tries): {reason}; mend the directory,"
            " then `plan history --rebuild` makes the history anew"
        )

    def _updated(self, change: Callable[[History], History], current: str, ended: str) -> Update:
        self._sweep()
        found, warning = self._load(), ""
        history = self._mended(found)
        if isinstance(found, Damage):
            warning = self._keep_aside(found)
        changed = change(history)
        if changed != found:
            write_whole(self.path, history_text(changed).encode(), _TEMPORARY)
        if current:
            write_whole(self.current_path, current.encode(), _TEMPORARY)
        elif ended and self._current_is(ended):
            self.current_path.unlink(missing_ok=True)
        return Update(changed, warning)

    def _load(self) -> History | Damage | None:
        """The history in the file, what is wrong with it, or None for a missing file."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Damage(reason="it is no regular file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return read_history(file.read(MAX_BYTES + 1))
        finally:
            os.close(descriptor)

    def _mended(self, found: History | Damage | None) -> History:
        if isinstance(found, History):
            return found
        if found is None:
            return History()
        known = {entry.agent_id for entry in found.saved}
        return agents.rebuilt([*found.saved, *(entry for entry in self._summarized() if entry.agent_id not in known)])

    def _summarized(self) -> Iterator[Entry]:
        """Runs that left a SUMMARY.md, as far as it can be read."""
        for path in sorted(self.directory.glob("runs/*/SUMMARY.md"))[:MAX_SUMMARIES]:
            with suppress(OSError), path.open("rb") as file:
                entry = entry_of_summary(file.read(SUMMARY_BYTES).decode(errors="replace"))
                if entry is not None:
                    yield entry

    def _keep_aside(self, damage: Damage) -> str:
        """Give the file a second name before it is replaced, so that no moment is without either."""
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        aside = self.path.with_name(f"{self.path.name}.corrupt-{moment}")
        if not any(other.samefile(self.path) for other in self.directory.glob(f"{self.path.name}.corrupt-*")):
            if self.path.is_file():
                os.link(self.path, aside)
            else:
                self.path.rename(aside)
        warning = (
            f"{self.path} could not be read: {damage.reason}; it was kept as {aside.name}, and the history made anew"
            f" from {len(damage.saved)} good entries and the summaries of runs"
        )
        _LOG.warning(warning)
        return warning

    def _current_is(self, agent_id: str) -> bool:
        try:
            return self.current_path.read_text(encoding="utf-8").strip() == agent_id
        except (OSError, UnicodeDecodeError):
            return False

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(self.directory / ".agent-history.lock", self.lock_seconds / TRIES):
            yield

    def _sweep(self) -> None:
        """Remove what killed writers left; whoever holds the lock is the only writer."""
        for path in self.directory.glob(f"{_TEMPORARY}*.tmp"):
            with suppress(OSError):
                path.unlink()


@dataclass(frozen=True)
class AgentTracker:
    """The activity `track_agent`: a run's begin, end, interruption or resumption goes into the history.

    It never fails a run: what could not be written is returned as a warning, for the run's log. It is repeatable.
    """

    history: AgentHistory

    @activity.defn(name="track_agent")
    def track_agent(self, event: AgentEvent) -> str:
        """Record the event; returns a warning, empty when all is well."""
        try:
            return self.history.record(event).warning
        except HistoryWriteFailed as error:
            return f"{error.code}: {error.message}"
