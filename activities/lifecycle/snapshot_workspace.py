"""The activity `snapshot_workspace`: describes a workspace for the LLM in a text of limited size, deterministically.

First the file names, breadth-first, then the beginnings of text files. Files ignored by .gitignore, hidden files and
directories, and links are left out; binary files and files that may contain secrets are listed but not read. All access
goes through `activities.workspace.workspace`, so nothing outside is included; the worker's own secrets are redacted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.values.redaction import Secrets
from plansurvive.activities.workspace.paths import shown
from plansurvive.activities.workspace.tree import Entry, walk
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.errors import ToolError
from plansurvive.plans.llm.snapshot import Snapshot, SnapshotRequest
from plansurvive.runtime.plan_files.library import Library

HEAD_BYTES = 1_200
"""Maximum bytes shown of one file."""
NAMES_SHARE = 0.5
"""Maximum share of the text for file names."""


@dataclass(frozen=True)
class SnapshotTaker:
    """Takes snapshots of workspaces."""

    secrets: Secrets = field(default_factory=lambda: Secrets([]))
    site: ToolEnvironment = field(default_factory=ToolEnvironment)
    state_dir: Path | None = None
    """The state directory, which has the user's templates."""
    library: Library = field(default_factory=Library)
    """Plans that the LLM may name."""

    @activity.defn(name="snapshot_workspace")
    async def snapshot_workspace(self, request: SnapshotRequest) -> Snapshot:
        """The snapshot. Raises ApplicationError NOT_FOUND, not retryable, if the workspace does not exist."""
        try:
            return await asyncio.to_thread(self.take, request)
        except ToolError as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=not error.retryable) from None

    def take(self, request: SnapshotRequest) -> Snapshot:
        """The snapshot, taken synchronously. Raises ToolError NOT_FOUND or WORKSPACE_REFUSED."""
        self.site.check(request.workspace, request.directory, request.plan_id)
        workspace = self.site.workspace(request.workspace, request.directory, request.plan_id)
        tree = walk(workspace)
        names, named = _names(tree.entries, int(request.max_bytes * NAMES_SHARE))
        complete = tree.complete and named == len(tree.entries)
        text = names if complete else f"{names}... and more that is not listed\n"
        text = text or "(the workspace is empty)\n"
        for part in _heads(workspace, tree.entries[:named], self.secrets):
            if len((text + part).encode()) <= request.max_bytes:
                text += part
        templates = self.library.for_model(workspace.root, self.state_dir, self.secrets.out_of)
        return Snapshot(text=self.secrets.out_of(text), files=named, complete=complete, templates=templates)


def _names(entries: list[Entry], limit: int) -> tuple[str, int]:
    """One line per entry within `limit` bytes, and the number of entries listed."""
    lines: list[str] = []
    for entry in entries:
        line = f"{_plain(entry.path)}{_remark(entry)}\n"
        limit -= len(line.encode())
        if limit < 0:
            break
        lines.append(line)
    return "".join(lines), len(lines)


def _remark(entry: Entry) -> str:
    if entry.is_directory:
        return "/"
    note = " (may hold secrets, not read)" if entry.is_secret else ""
    return f" {entry.size:,} bytes{note}"


def _heads(workspace: Workspace, entries: list[Entry], secrets: Secrets) -> Iterator[str]:
    """The beginnings of the text files among the entries."""
    for entry in entries:
        if entry.is_directory or entry.is_secret or entry.size == 0:
            continue
        # Redact before cutting: half of a secret would not be recognised.
        text = _text(entry.head(workspace, 4 * HEAD_BYTES))
        if not text:
            continue
        head = _cut(secrets.out_of(text))
        how_much = "" if len(head.encode()) >= entry.size else f", the first {len(head.encode()):,} bytes"
        yield f"\n=== {_plain(entry.path)}{how_much} ===\n{head.rstrip()}\n"


def _plain(path: str) -> str:
    """The path on one line, with control characters escaped."""
    return shown(path)[1:-1]


def _text(data: bytes) -> str:
    """The bytes as text, without a character cut off at the end; empty if they are not UTF-8 text."""
    if b"\0" in data:
        return ""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data" and error.start >= len(data) - 3
        return data[: error.start].decode() if is_cut else ""


def _cut(text: str) -> str:
    """The first HEAD_BYTES of a text, cut at the end of a line if possible."""
    data = text.encode()
    if len(data) <= HEAD_BYTES:
        return text
    head = data[:HEAD_BYTES].decode("utf-8", "ignore")
    lines, newline, _ = head.rpartition("\n")
    return lines + newline if newline else head
