"""The history of agent runs as an immutable value: which agent, plan, outcome, and which run resumed it (seed 001).

Every operation returns a new `History`; times are passed in. A run is identified by its `agent_id`; if an id occurs
twice, the entry with the later timestamp is used. Operations are idempotent, so an activity may retry them, and ignore
unknown ids. A run that failed, timed out or completed keeps that outcome when another resumes it; only an interrupted
one becomes `resumed`. Never evicted: runs in progress, and interrupted runs that have not been resumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from plansurvive.plans.activity_io import AgentEvent
from plansurvive.plans.execution.resume import base_id
from plansurvive.plans.model import Value

MAX_ENTRIES = 50
VERSION: Literal["1.0"] = "1.0"
DEFAULT_TYPE = "general-purpose"
"""`agent_type` of our agents, which are not specialised (the name is from seed 001)."""
PLAN_TYPE = "plan"
"""`agent_type` of a plan's run, as reconstructed from the server or from a SUMMARY.md file."""

Status = Literal["spawned", "completed", "interrupted", "resumed", "failed", "timeout"]
Ended = Literal["completed", "failed", "timeout"]


def parsed(timestamp: str) -> datetime:
    """Parse an ISO 8601 timestamp; UTC if it has no zone. Raises ValueError."""
    time = datetime.fromisoformat(timestamp)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def written(time: datetime) -> str:
    """Format a time for the history: ISO 8601 in UTC, with milliseconds unless they are zero."""
    utc = time.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds" if utc.microsecond else "seconds").replace("+00:00", "Z")


def _is_timestamp(text: str) -> str:
    parsed(text)
    return text


Timestamp = Annotated[str, AfterValidator(_is_timestamp)]


class Entry(BaseModel):
    """One run of an agent; field names and order are those of the file. Unknown fields are preserved."""

    model_config = ConfigDict(frozen=True, extra="allow")

    agent_id: str = Field(min_length=1, description="Id of the run.")
    agent_type: str | None = Field(default=None, description="Type of the agent.")
    task_description: str = Field(description="What it was asked to do, for people.")
    plan: str | None = Field(default=None, description="The plan it worked on.")
    timestamp: Timestamp = Field(description="When it was spawned.")
    status: Status
    completion_timestamp: Timestamp | None = Field(description="When it ended or was interrupted.")
    resumes: str | None = Field(default=None, description="Id of the run that this one resumes.")
    resumed_by: str | None = Field(default=None, description="Id of the run that resumed this one.")

    @property
    def started(self) -> datetime:
        """When it was spawned."""
        return parsed(self.timestamp)


class History(BaseModel):
    """The file `agent-history.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal["1.0"] = VERSION
    max_entries: int = Field(default=MAX_ENTRIES, ge=1, le=100_000, strict=True)
    entries: list[Entry] = Field(default_factory=list, description="In insertion order.")


class Spawn(Value):
    """A run that starts."""

    agent_id: str = Field(min_length=1, max_length=200)
    agent_type: str = DEFAULT_TYPE
    plan: str | None = None
    task_group: str = Field(default="", description="Its task in the plan, or its request if it works without a plan.")


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
    """Record that a run has started."""
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
    """Record how a run ended; it was not interrupted."""
    return _changed(history, agent_id, status=status, completion_timestamp=written(time))


def interrupt(history: History, agent_id: str, time: datetime) -> History:
    """Record that a run was interrupted; it can be resumed, unless it was."""
    entry = find(history, agent_id)
    status = "resumed" if entry and entry.resumed_by else "interrupted"
    return _changed(history, agent_id, status=status, completion_timestamp=written(time))


def resume(history: History, old_id: str, new_id: str, time: datetime) -> History:
    """Record that a new run resumes an old one, in both entries."""
    if any(entry.agent_id == new_id and entry.resumes == old_id for entry in history.entries):
        return history
    old = find(history, old_id)
    marked = _changed(history, old_id, **_resumed_by(old, new_id)) if old else history
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
    """The entry of a run, the latest if there are several with its id; None if unknown."""
    index = _index(history, agent_id)
    return None if index is None else history.entries[index]


def settled(history: History, ends: Iterable[tuple[str, Status, datetime]]) -> History:
    """The history with the ends of runs that it has as `spawned`: (id, status, time), as the server knows them."""
    for agent_id, status, time in ends:
        entry = find(history, agent_id)
        if entry is not None and entry.status == "spawned" and status != "spawned":
            history = _changed(history, agent_id, status=status, completion_timestamp=written(time))
    return linked(history)


def active(history: History) -> list[Entry]:
    """The runs in progress, the newest first."""
    running = [entry for entry in history.entries if entry.status == "spawned"]
    return sorted(running, key=lambda entry: entry.started, reverse=True)


def resumable(history: History) -> Entry | None:
    """The most recent run that was interrupted, or spawned and never ended, and has not been resumed."""
    resumed = _resumed_ids(history)
    candidates = [
        entry
        for entry in history.entries
        if entry.status in ("interrupted", "spawned") and not _is_resumed(entry, resumed)
    ]
    return max(candidates, key=lambda entry: entry.started, default=None)


def of_plan(history: History, plan: str) -> list[Entry]:
    """The runs of one plan, oldest first. `plan`: its id, or that of one of its runs (`x-r2` of `x`)."""
    wanted = (plan, base_id(plan))
    return sorted((entry for entry in history.entries if entry.plan in wanted), key=lambda entry: entry.started)


def linked(history: History) -> History:
    """The history in which every run that another says it resumes says so, too: links survive a damaged file."""
    for entry in history.entries:
        old = find(history, entry.resumes) if entry.resumes else None
        if old is not None and old.resumed_by is None:
            history = _changed(history, old.agent_id, **_resumed_by(old, entry.agent_id))
    return history


def rebuilt(entries: Iterable[Entry], max_entries: int = MAX_ENTRIES) -> History:
    """Rebuild a history from entries in any order, such as those read from the server: linked, without duplicates."""
    unique = {(entry.agent_id, entry.timestamp): entry for entry in entries}
    ordered = sorted(unique.values(), key=lambda entry: (entry.started, entry.agent_id))
    return evicted(linked(History(max_entries=max_entries, entries=ordered)))


def evicted(history: History) -> History:
    """Shrink the history to its limit, as far as entries may be evicted. Oldest first, in this order of status:

    completed or failed, then interrupted and resumed, then timed out (otherwise those would never be evicted).
    """
    surplus = len(history.entries) - history.max_entries
    if surplus <= 0:
        return history
    resumed = _resumed_ids(history)
    ranked = [(rank, index) for index, entry in enumerate(history.entries) if (rank := _rank(entry, resumed)) >= 0]
    ranked.sort(key=lambda item: (item[0], history.entries[item[1]].started, item[1]))
    evicted_indexes = {index for _, index in ranked[:surplus]}
    remaining = [entry for index, entry in enumerate(history.entries) if index not in evicted_indexes]
    return history.model_copy(update={"entries": remaining})


def _rank(entry: Entry, resumed: set[str]) -> int:
    """Eviction rank: 0 is evicted first, -1 never."""
    if entry.status in ("completed", "failed"):
        return 0
    if entry.status in ("interrupted", "resumed") and _is_resumed(entry, resumed):
        return 1
    return 2 if entry.status == "timeout" else -1


def _is_resumed(entry: Entry, resumed: set[str]) -> bool:
    return entry.status == "resumed" or entry.resumed_by is not None or entry.agent_id in resumed


def _resumed_ids(history: History) -> set[str]:
    return {entry.resumes for entry in history.entries if entry.resumes}


def _resumed_by(old: Entry, new_id: str) -> dict[str, str]:
    """What changes in an entry when another run resumes it. How it ended stays, unless it was only interrupted."""
    is_open = old.status in ("interrupted", "spawned", "resumed")
    return {"resumed_by": new_id, **({"status": "resumed"} if is_open else {})}


def _index(history: History, agent_id: str) -> int | None:
    matches = [index for index, entry in enumerate(history.entries) if entry.agent_id == agent_id]
    return max(matches, key=lambda index: (history.entries[index].started, index), default=None)


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
