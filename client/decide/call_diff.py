"""The change that a call would make to a file as it is now, for whoever decides about the call.

Only of the built-in tools that change one file: what other tools do with their arguments is not known. A decision is
about the call (its digest), not about this: the file may change before the call starts, so what was compared is told
with time and hash. The workspace is hostile: it is entered one name at a time without following links out of it, pipes
do not block, sizes are limited, and files that may hold secrets are not read. Nothing here changes a file.

Only of tools whose effect is known: another tool with the same arguments may append or merge, and a diff would be a
guess that a person approves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from plansurvive.activities.tools.text_edit import find_edit
from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.activities.workspace.contents import check_replaceable, read_head, text_of
from plansurvive.activities.workspace.text_diff import unified_diff
from plansurvive.activities.workspace.tree import may_hold_secrets
from plansurvive.activities.workspace.workspace import DirectoryEntry, Workspace
from plansurvive.plans.errors import ToolError
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import exact, line
from plansurvive.plans.views.models.card import Card

COMPARED_BYTES = 400_000
COMPARED_LINES = 4_000
"""Maximum size of a file that is compared with what a call would write, and of both texts in lines."""
DELETED_LINES = 400
"""Lines of a deleted file that are shown: it is not part of the call, and may be cut."""
CHANGING = ("write_file", "edit_file", "delete_file")
"""The tools that change one file in a known way."""
_KEYS = "keys and passwords"
"""Title of the protected names that are secret."""

Kind = Literal["created", "changed", "deleted", "same", "not_applicable", "not_shown", "unknown"]
"""not_applicable: the call would fail with the file as it is. not_shown: the file is binary, too large or may hold
secrets. unknown: it cannot be read from here."""


class DiffLine(NamedTuple):
    """One line of a unified diff, without the names of the files."""

    mark: str
    """`+`, `-`, a space, `@` (where a hunk begins) or `\\` (a remark)."""
    text: str
    """As it is in the file; show it with `exact`."""

    @property
    def row(self) -> str:
        """Mark and text. An empty line that stays has none: its mark would look like a space at the end of a line."""
        return f"{self.mark}{self.text}" if self.text or self.mark != " " else ""


class FileSeen(NamedTuple):
    """The file that was compared."""

    bytes: int
    changed_at: datetime
    sha256: str = ""
    """Empty: it was not read."""


@dataclass(frozen=True)
class CallDiff:
    """What a call would do to a file."""

    kind: Kind
    path: str
    """As the call names it."""
    note: str
    """A sentence about it, safe to show."""
    lines: tuple[DiffLine, ...] = ()
    """Every line that would change. Of a deleted file perhaps only the beginning; the note says so."""
    before: FileSeen | None = None
    """The file as it is now; None: there is none, or it cannot be read."""

    @property
    def rows(self) -> list[str]:
        """The lines as they are shown: everything unusual in them is visible."""
        return [exact(each.row) for each in self.lines]

    @property
    def added(self) -> int:
        """Number of lines that are added."""
        return sum(each.mark == "+" for each in self.lines)

    @property
    def removed(self) -> int:
        """Number of lines that are removed."""
        return sum(each.mark == "-" for each in self.lines)


def call_diff(item: Card, workspace: str | None = None, rules: WorkspaceRules | None = None) -> CallDiff | None:
    """The change that the call would make in its workspace on this machine; None if it changes no file it names.

    `workspace`: instead of the call's. `rules`: of this machine; a workspace that they refuse is not looked into. Reads
    files, so it may block for a moment.
    """
    path = path_of(item)
    if path is None:
        return None
    if item.large:
        return _told(
            "unknown", path, "would get a large value that is filled in when the call starts; no diff is shown"
        )
    root = item.workspace if workspace is None else workspace
    if not root.startswith("/"):
        return _told("unknown", path, "is in a workspace that is not known here")
    try:
        if rules is not None:
            rules.check_recorded(root)
        files = Workspace(root, closed=rules.closed if rules else frozenset())
        with files.file(path, follow=item.tool != "delete_file") as place:
            return _compared(item, path, place)
    except ToolError as error:
        kind: Kind = "unknown" if error.code in ("WORKSPACE_REFUSED", "NOT_FOUND") else "not_applicable"
        return CallDiff(kind, path, f"No diff: {line(error.message)}")
    except (OSError, ValueError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return _told("unknown", path, f"cannot be read here: {line(str(why))}")


def diff_of(item: Card, before: str | None) -> CallDiff | None:
    """The change that the call would make to a file with this text; None: to one that is not there."""
    path = path_of(item)
    if path is None:
        return None
    return _created(item, path) if before is None else _of_texts(item, path, before)


def changed_text(item: Card, before: str | None) -> str | None:
    """The text of the file after a call that can be made; None if it is deleted. `before`: the text it has."""
    if item.tool == "delete_file":
        return None
    if item.tool == "write_file":
        return str(item.args["content"])
    if not item.args["oldText"]:
        return str(item.args["newText"])
    return find_edit(item.args["path"], before or "", item.args["oldText"], item.args["newText"]).result


def path_of(item: Card) -> str | None:
    """The file that the call changes; None if it is not one of the tools of which that is known, or malformed."""
    names = {"write_file": ("path", "content"), "edit_file": ("path", "oldText", "newText"), "delete_file": ("path",)}
    args = names.get(item.tool, ())
    if item.kind not in ("approval", "early", "") or not args:
        return None
    return item.args["path"] if all(isinstance(item.args.get(name), str) for name in args) else None


def _compared(item: Card, path: str, place: DirectoryEntry) -> CallDiff:
    if place.status is None:
        return _created(item, path)
    seen = FileSeen(place.status.st_size, datetime.fromtimestamp(place.status.st_mtime, UTC))
    if item.tool == "delete_file" and not place.is_regular:
        if place.is_directory:
            return _told("not_applicable", path, "is a directory, which delete_file does not delete")
        return _told("deleted", path, "is a link or a special file; it would be deleted, and not what it leads to")
    if item.tool != "delete_file":
        check_replaceable(place)
    if _is_secret(place):
        text = f"may hold secrets ({_size(seen.bytes)} now): its present content is not shown"
        return replace(_told("not_shown", path, text), before=seen)
    data = read_head(place, COMPARED_BYTES + 1)
    if len(data) > COMPARED_BYTES:
        return replace(_told("not_shown", path, f"is too large to compare: {_size(seen.bytes)} now"), before=seen)
    seen = seen._replace(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    try:
        before = text_of(place, data)
    except ToolError:
        what = {"write_file": "would be replaced", "delete_file": "would be deleted"}.get(item.tool, "cannot be edited")
        text = f"is not a text file ({_size(seen.bytes)} now); it {what}"
        return replace(_told("not_applicable" if item.tool == "edit_file" else "not_shown", path, text), before=seen)
    return replace(_of_texts(item, path, before), before=seen)


def _created(item: Card, path: str) -> CallDiff:
    """What the call would do where no file is."""
    if item.tool == "delete_file" or (item.tool == "edit_file" and item.args["oldText"]):
        return _told("not_applicable", path, "does not exist now: the call would fail")
    content = item.args["content" if item.tool == "write_file" else "newText"]
    lines = tuple(_lines("", content)) if content.count("\n") <= COMPARED_LINES else ()
    return CallDiff("created", path, f"{_name(path)} does not exist now; it would be created", lines)


def _of_texts(item: Card, path: str, before: str) -> CallDiff:
    """What the call would do to a text file."""
    if item.tool == "delete_file":
        lines = tuple(_lines(before, ""))[1:]
        more = len(lines) - DELETED_LINES
        cut = f"; the first {DELETED_LINES} of {len(lines)} lines are shown" if more > 0 else ""
        return CallDiff("deleted", path, f"{_name(path)} would be deleted{cut}", lines[:DELETED_LINES])
    after = item.args.get("content", "")
    if item.tool == "edit_file":
        if not item.args["oldText"]:
            return _told("not_applicable", path, "exists now, and an empty oldText only creates a file")
        try:
            after = find_edit(path, before, item.args["oldText"], item.args["newText"]).result
        except ToolError as error:
            return CallDiff("not_applicable", path, f"The call would fail now: {line(error.message)}")
    if max(before.count("\n"), after.count("\n")) > COMPARED_LINES and item.tool == "write_file":
        return _told("not_shown", path, f"is too large to compare: more than {COMPARED_LINES:,} lines")
    lines = tuple(_lines(before, after))
    if not lines:
        return _told("same", path, "already has exactly this content")
    return CallDiff("changed", path, f"{_name(path)} would be changed", lines)


def _lines(before: str, after: str) -> Iterator[DiffLine]:
    """The lines of the diff of two texts."""
    for text in unified_diff("", before, after).split("\n")[2:-1]:
        yield DiffLine(text[:1], text[1:])


def _is_secret(place: DirectoryEntry) -> bool:
    """Whether the file may hold secrets: by its name as requested, or as it really is."""
    for parts in (place.path.split("/"), list(place.real_parts)):
        found = place.names.reason(parts)
        if may_hold_secrets(parts[-1]) or (found is not None and found.title == _KEYS):
            return True
    return False


def _size(number: int) -> str:
    return number_of(number, "byte")


def _told(kind: Kind, path: str, what: str) -> CallDiff:
    return CallDiff(kind, path, f"{_name(path)} {what}")


def _name(path: str) -> str:
    return f"'{exact(line(path))}'"
