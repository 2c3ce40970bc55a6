"""The history of agent runs as a value (seed 001): who ran, on which plan, how it ended, who went on with it.

Every operation gives a new `History`; times are passed in. A run is its `agent_id`; where an id occurs twice, the entry
with the later timestamp is meant. An operation on an unknown id changes nothing, repeating one changes nothing either,
so that an activity may do it again. Never evicted: runs in progress, and interrupted ones nobody has resumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from plans.model import Value

MAX_ENTRIES = 50
VERSION: Literal["1.0"] = "1.0"
DEFAULT_TYPE = "general-purpose"
"""What kind of agent runs: ours have no specialities, so they are what seed 001 calls one without."""
PLAN_TYPE = "plan"
"""What stands there for a run of a plan: no agent, but found in the server's record and in SUMMARY.md files."""

Status = Literal["spawned", "completed", "interrupted", "resumed", "failed", "timeout"]
Ended = Literal["completed", "failed", "timeout"]


def parsed(timestamp: str) -> datetime:
    """The moment a timestamp names; one without a zone is UTC. Raises ValueError for what is none."""
    time = datetime.fromisoformat(timestamp)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def written(time: datetime) -> str:
    """A moment as the history writes it: ISO 8601, UTC, to the millisecond where it matters."""
    utc = time.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds" if utc.microsecond else "seconds").replace("+00:00", "Z")


def _is_timestamp(text: str) -> str:
    parsed(text)
    return text


Timestamp = Annotated[str, AfterValidator(_is_timestamp)]


class Entry(BaseModel):
    """One run of an agent, with the names and the order of the file. Fields of others are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    agent_id: str = Field(min_length=1, description="Names the run.")
    agent_type: str | None = Field(default=None, description="What kind of agent.")
    task_description: str = Field(description="What it was to do, for people.")
    plan: str | None = Field(default=None, description="The plan it worked on.")
    timestamp: Timestamp = Field(description="When it was spawned.")
    status: Status
    completion_timestamp: Timestamp | None = Field(description="When it ended or was interrupted.")
    resumes: str | None = Field(default=None, description="The run it goes on with.")
    resumed_by: str | None = Field(default=None, description="The run that went on with it.")

    @property
    def started(self) -> datetime:
        """When it was spawned."""
        return parsed(self.timestamp)


class History(BaseModel):
    """The file `agent-history.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal["1.0"] = VERSION
    max_entries: int = Field(default=MAX_ENTRIES, ge=1, le=100_000, strict=True)
    entries: list[Entry] = Field(default_factory=list, description="In the order they were added.")


class Spawn(Value):
    """A run that begins."""

    agent_id: str = Field(min_length=1, max_length=200)
    agent_type: str = DEFAULT_TYPE
    plan: str | None = None
    task_group: str = Field(default="", description="What it does for the plan, or by itself.")


class AgentEvent(Value):
    """What is to be recorded of a run; the workflow says it, with the time at which it happened."""

    kind: Literal["spawned", "completed", "failed", "timeout", "interrupted", "resumed"]
    agent_id: str = Field(min_length=1, max_length=200, description="The run; of `resumed`, the new one.")
    time: datetime = Field(description="When it happened; the same over all attempts to record it.")
    agent_type: str = Field(default=DEFAULT_TYPE, description="Of `spawned`.")
    plan: str | None = Field(default=None, description="Of `spawned`.")
    task_group: str = Field(default="", description="Of `spawned`: what it is to do.")
    resumes: str = Field(default="", description="Of `resumed`: the old run.")


def applied(history: History, event: AgentEvent) -> History:
    """The history after an event."""
    if event.kind == "spawned":
        fields = event.model_dump(include={"agent_id", "agent_type", "plan", "task_group"}, by_alias=False)
        return spawn(history, Spawn(**fields), event.time)
    if event.kind == "resumed":
        return resume(history, event.resumes, event.agent_id, event.time)
    if event.kind == "interrupted":
        return interrupt(history, event.agent_id, event.time)
    return complete(history, event.agent_id, event.kind, event.time)


def spawn(history: History, run: Spawn, time: datetime) -> History:
    """A run has begun."""
    entry = Entry(
        agent_id=run.agent_id,
        agent_type=run.agent_type,
        task_description=f"Execute plan {run.plan}: {run.task_group}" if run.plan else run.task_group,
        plan=run.plan,
        timestamp=written(time),
        status="spawned",
        completion_timestamp=None,
    )
    return _added(history, entry)


def complete(history: History, agent_id: str, status: Ended, time: datetime) -> History:
    """A run has ended by itself."""
    return _changed(history, agent_id, status=status, completion_timestamp=written(time))


def interrupt(history: History, agent_id: str, time: datetime) -> History:
    """A run was stopped in the middle; it can be resumed."""
    return _changed(history, agent_id, status="interrupted", completion_timestamp=written(time))


def resume(history: History, old_id: str, new_id: str, time: datetime) -> History:
    """A new run goes on with an old one; both entries say so."""
    if any(entry.agent_id == new_id and entry.resumes == old_id for entry in history.entries):
        return history
    old = find(history, old_id)
    marked = _changed(history, old_id, status="resumed", resumed_by=new_id)
    entry = Entry(
        agent_id=new_id,
        agent_type=(old.agent_type if old else None) or DEFAULT_TYPE,
        task_description=old.task_description if old else "Resumed execution",
        plan=old.plan if old else None,
        timestamp=written(time),
        status="spawned",
        completion_timestamp=None,
        resumes=old_id,
    )
    return _added(marked, entry)


def find(history: History, agent_id: str) -> Entry | None:
    """The entry of a run: of several with its id, the latest."""
    index = _index(history, agent_id)
    return None if index is None else history.entries[index]


def active(history: History, current_id: str | None) -> Entry | None:
    """The run that `current-agent-id.txt` names."""
    return find(history, current_id.strip()) if current_id and current_id.strip() else None


def resumable(history: History) -> Entry | None:
    """The most recent run that was interrupted, or spawned and never heard of again, and not resumed."""
    resumed = _resumed_ids(history)
    open_ends = [
        entry
        for entry in history.entries
        if entry.status in ("interrupted", "spawned") and not _is_resumed(entry, resumed)
    ]
    return max(open_ends, key=lambda entry: entry.started, default=None)


def of_plan(history: History, plan: str) -> list[Entry]:
    """The runs of one plan, in time order."""
    return sorted((entry for entry in history.entries if entry.plan == plan), key=lambda entry: entry.started)


def rebuilt(entries: Iterable[Entry], max_entries: int = MAX_ENTRIES) -> History:
    """A history made anew from entries in any order, as from the server's own record; duplicates once."""
    unique = {(entry.agent_id, entry.timestamp): entry for entry in entries}
    ordered = sorted(unique.values(), key=lambda entry: (entry.started, entry.agent_id))
    return evicted(History(max_entries=max_entries, entries=ordered))


def evicted(history: History) -> History:
    """The history within its limit, as far as there are entries that may go, the oldest of the first kind first:

    completed or failed; interrupted and resumed; at last those that ran out of time, which would stay for ever.
    """
    surplus = len(history.entries) - history.max_entries
    if surplus <= 0:
        return history
    resumed = _resumed_ids(history)
    ranked = [(rank, index) for index, entry in enumerate(history.entries) if (rank := _rank(entry, resumed)) >= 0]
    ranked.sort(key=lambda item: (item[0], history.entries[item[1]].started, item[1]))
    gone = {index for _, index in ranked[:surplus]}
    kept = [entry for index, entry in enumerate(history.entries) if index not in gone]
    return history.model_copy(update={"entries": kept})


def _rank(entry: Entry, resumed: set[str]) -> int:
    """Which kind goes first; -1 for those that stay."""
    if entry.status in ("completed", "failed"):
        return 0
    if entry.status in ("interrupted", "resumed") and _is_resumed(entry, resumed):
        return 1
    return 2 if entry.status == "timeout" else -1


def _is_resumed(entry: Entry, resumed: set[str]) -> bool:
    return entry.status == "resumed" or entry.resumed_by is not None or entry.agent_id in resumed


def _resumed_ids(history: History) -> set[str]:
    return {entry.resumes for entry in history.entries if entry.resumes}


def _index(history: History, agent_id: str) -> int | None:
    found = [index for index, entry in enumerate(history.entries) if entry.agent_id == agent_id]
    return max(found, key=lambda index: (history.entries[index].started, index), default=None)


def _changed(history: History, agent_id: str, **changes: str) -> History:
    index = _index(history, agent_id)
    if index is None:
        return history
    entries = list(history.entries)
    entries[index] = entries[index].model_copy(update=changes)
    return history.model_copy(update={"entries": entries})


def _added(history: History, entry: Entry) -> History:
    known = {(other.agent_id, other.timestamp) for other in history.entries}
    if (entry.agent_id, entry.timestamp) in known:
        return history
    return evicted(history.model_copy(update={"entries": [*history.entries, entry]}))
