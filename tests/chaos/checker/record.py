"""Reads what a night leaves behind: promises, histories as Temporal exports them, and files. Standard library only.

A record is a directory:

    promises.json             what each plan must come to, written before anything was started
    histories/WORKFLOW.json   {"runs": [history, ...], "description": ...}, oldest run first
    storm.jsonl               one line for each fault: {"time": seconds since 1970, "what": ..., "killed": [...]}

Times in a history are those of the server.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

ANCHOR = "<end>"
"""Last line of a file that plans add lines to; belongs to no plan."""
OPEN = "open"
"""Status of a plan whose workflow has not ended."""

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Promise:
    """What a plan must come to. Paths are relative to the workspace."""

    workflow: str
    statuses: Sequence[str] = ("completed",)
    failed: Mapping[str, str] = field(default_factory=dict)
    """Steps that must fail, with the code that people must be shown."""
    listed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Files and their lines, in this order."""
    any_order: Mapping[str, Sequence[str]] = field(default_factory=dict)
    at_most: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Lines that may be missing: a call that must not be repeated may never have begun."""
    either: Sequence[Sequence[str]] = ()
    """Groups of files of `at_most`; at least one of each group has its line: the effect, or that it is in doubt."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files and their whole content."""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Promise:
        """From its JSON. Raises TypeError for unknown fields: a promise that is not understood is not checked."""
        return cls(**data)

    @property
    def paths(self) -> set[str]:
        """Every file that the plan may leave behind."""
        return {*self.listed, *self.any_order, *self.at_most, *self.files}


@dataclass(frozen=True)
class Workflow:
    """One workflow: the events of all its runs, and how the server described it in the end."""

    id: str
    events: Sequence[Event]
    description: Mapping[str, Any]

    @cached_property
    def status(self) -> str:
        """How its plan ended, in the words of the plan; `open` if it has not."""
        return str(self.summary.get("status") or ENDS.get(self.events[-1]["eventType"], OPEN))

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """What people are told of the end: the result of the workflow, or the detail of its failure."""
        last = self.events[-1]
        result = last.get("workflowExecutionCompletedEventAttributes", {}).get("result", {})
        failure = last.get("workflowExecutionFailedEventAttributes", {}).get("failure", {})
        details = failure.get("applicationFailureInfo", {}).get("details", {})
        values = [value for each in (result, details) for value in _values(each)]
        return values[0] if values and isinstance(values[0], dict) else {}

    @cached_property
    def failure(self) -> str:
        """Message of the failure that the workflow ended with; empty without one."""
        attributes = self.events[-1].get("workflowExecutionFailedEventAttributes", {})
        return str(attributes.get("failure", {}).get("message", ""))

    def of_type(self, name: str) -> Iterator[tuple[Event, Mapping[str, Any]]]:
        """Events of a type (`ActivityTaskScheduled`), with their attributes."""
        key = f"{name[0].lower()}{name[1:]}EventAttributes"
        return ((event, event[key]) for event in self.events if key in event)


ENDS = {
    "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED": "completed",
    "EVENT_TYPE_WORKFLOW_EXECUTION_FAILED": "failed",
    "EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED": "cancelled",
    "EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED": "terminated",
    "EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT": "timed out",
}


@dataclass(frozen=True)
class Fault:
    """Something that was done to the system. `killed`: processes ended by SIGKILL. `watched`: the next fault came only
    after some plan had gone a step further, so it tells how long a recovery takes.
    """

    time: float
    what: str
    killed: Sequence[str] = ()
    watched: bool = False


@dataclass(frozen=True)
class Record:
    """A whole record, and the workspace that its plans worked in."""

    promises: Sequence[Promise]
    workflows: Mapping[str, Workflow]
    faults: Sequence[Fault]
    workspace: Path

    @classmethod
    def read(cls, folder: Path, workspace: Path) -> Record:
        """Read it. Raises OSError or ValueError if it is incomplete: nothing is then known about the night."""
        promises = [Promise.read(each) for each in json.loads((folder / "promises.json").read_text())]
        found = {path.stem: _workflow(path) for path in sorted((folder / "histories").glob("*.json"))}
        log = folder / "storm.jsonl"
        faults = [Fault(**json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
        return cls(promises, found, faults, workspace)

    def lines(self, path: str) -> list[str]:
        """Lines of a file of the workspace, without keys of calls and the anchor; none if there is no such file."""
        text = self.text(path) or ""
        return [line.partition("\t")[0] for line in text.splitlines() if line != ANCHOR]

    def text(self, path: str) -> str | None:
        """Content of a file of the workspace; None if there is none."""
        file = self.workspace / path
        return file.read_text(errors="replace") if file.is_file() else None


def seconds(event: Event) -> float:
    """Time of an event, in seconds since 1970."""
    return datetime.fromisoformat(str(event["eventTime"]).replace("Z", "+00:00")).timestamp()


def _workflow(path: Path) -> Workflow:
    data = json.loads(path.read_text())
    events = [event for history in data["runs"] for event in history["events"]]
    return Workflow(path.stem, events, data.get("description") or {})


def _values(payloads: Mapping[str, Any]) -> Iterator[Any]:
    for payload in payloads.get("payloads", []):
        if "data" in payload:
            yield json.loads(base64.b64decode(payload["data"]))
