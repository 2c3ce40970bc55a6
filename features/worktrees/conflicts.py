"""Three-way merges of trees, and what is in conflict then: asked about place by place, with the three versions.

`base` is what both began from, `ours` as the branch has it, `theirs` as the step left it. A choice is about a place in
a file, known by the three objects: it counts for exactly this conflict, wherever the branch is by then. What is no
text, too long to be shown, or deleted on one side is chosen as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plansurvive.activities.workspace.file_names import visible
from plansurvive.features.worktrees.git import Git, GitFailed
from plansurvive.features.worktrees.model import OTHER, Choice, ConflictPlace, WorktreeConflict
from plansurvive.plans.errors import ToolError
from plansurvive.plans.text.lists import number_of, some
from plansurvive.plans.text.safe_text import line

CONFLICT = "WORKTREE_CONFLICT"
MAX_FILE, MAX_LINES = 1_000_000, 400
"""Bytes of a version that is compared line by line; lines of a file's places, all versions, that are shown."""
MAX_ASKED, MAX_PLACES, MAX_SHOWN = 20_000, 12, 10
"""Characters and places of one question, which the next one continues; files that an error names."""
_LISTED = ("100644", "100755")
_MARKS = (b"<", b"|", b"=", b">")
_SIDES = ("base", "ours", "theirs")
Side = tuple[str, str]
"""Mode and object."""


class Conflict(ToolError):
    """Files in which the work of a step and the branch are in conflict, and the question about them."""

    def __init__(self, found: WorktreeConflict, names: Sequence[str], way: str) -> None:
        self.found = found
        text = f"{found.what} conflicts with the branch in {some(names, MAX_SHOWN, line)}; nothing has changed"
        super().__init__(CONFLICT, f"{text}. {way}")


@dataclass(frozen=True)
class Merging:
    """One merge: what is merged, in words, and what has been chosen about conflicts."""

    git: Git
    into: str
    """The branch, as people type it."""
    what: str
    """`the work of step 'fix'`."""
    way: str = ""
    """What to do instead of answering."""
    chosen: Sequence[Choice] = ()
    marks: list[str] | None = None
    """Where to add the files in conflict, which are then left with marks around their versions; None: it is refused."""

    def picked(self, base: str, ours: str, theirs: str) -> str:
        """The tree object of `ours` with what has changed from `base` to `theirs`. Raises Conflict."""
        # Two commits as if both had begun at `base`: what they have in common is then that place alone.
        of_base = ("-p", base, "-m", "onto")
        return self.merged(*(self.git.text("commit-tree", f"{each}^{{tree}}", *of_base) for each in (ours, theirs)))

    def merged(self, ours: str, theirs: str) -> str:
        """The tree object of a merge of two commits. Raises Conflict."""
        try:
            return self.git.text("merge-tree", "--write-tree", "-z", "--no-messages", ours, theirs).rstrip("\0")
        except GitFailed as failure:
            if failure.exit_code != 1:
                raise
            content, *rows = failure.output.split(b"\0")
        sides: dict[str, dict[int, Side]] = {}
        for meta, _, path in (row.partition(b"\t") for row in rows if b"\t" in row):
            mode, name, stage = meta.decode().split()
            sides.setdefault(os.fsdecode(path), {})[int(stage)] = mode, name
        if self.marks is not None:
            self.marks.extend(name for name in map(visible, sides) if name not in self.marks)
            return content.decode()
        files = [_File.of(self.git, path, found) for path, found in sides.items()]
        if any(file.resolved(self.chosen) is None for file in files):
            raise self._conflict(files) from None
        index = replace(self.git, index=f"{self.git.directory}/index.resolved")
        index.run("read-tree", content.decode())
        for file in files:
            gone = f"0 {'0' * len(content)}\t{file.path}\0"  # removes every stage of it
            kept = file.entry(self.chosen)
            row = f"{kept[0]} {kept[1]} 0\t{file.path}\0" if kept else ""
            index.run("update-index", "-z", "--index-info", given=os.fsencode(gone + row))
        return index.text("write-tree")

    def _conflict(self, files: Sequence[_File]) -> Conflict:
        """The conflict, with the question about as many of its places as fit into one."""
        open_ = [file for file in files if file.resolved(self.chosen) is None]
        rows, fields, places = list[str](), dict[str, Any](), dict[str, ConflictPlace]()
        asked = 0
        for file in open_:
            text, more = file.shown(self.into, self.what), file.places
            if rows and (sum(map(len, (*rows, *text))) > MAX_ASKED or len(places) + len(more) > MAX_PLACES):
                break
            rows += ["", *text]
            asked += 1
            for name, place in more.items():
                places[name] = place
                fields |= _fields(name, place, self.into, self.what)
        left = len(open_) - asked
        head = f"{self.what[:1].upper()}{self.what[1:]} and {self.into} have changed the same lines. What counts?"
        rest = [f"{number_of(left, 'more file')} in conflict will be asked about next."] if left else []
        foot = "For each place: ours, theirs, both, or other lines (of a file: ours or theirs). All else is merged."
        schema = {"type": "object", "properties": fields, "required": list(places), "additionalProperties": False}
        question = {"question": "\n".join([head, foot, *rest, *rows]), "schema": schema}
        found = WorktreeConflict(what=self.what, question=question, places=places)
        return Conflict(found, [visible(file.path) for file in open_], self.way)


def _fields(name: str, place: ConflictPlace, into: str, what: str) -> dict[str, Any]:
    """The fields of a form about a place."""
    options = [("ours", f"as {into} has it"), ("theirs", what)]
    if place.index < 0:
        return {name: _choice(name, options)}
    options += [("both", "ours, then theirs"), (OTHER, "the lines entered below, or none")]
    text = {"type": "string", "format": "multiline", "description": "Only for the choice `other`."}
    return {name: _choice(name, options), f"{name} {OTHER}": text}


def _choice(name: str, options: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {"title": name, "oneOf": [{"const": value, "title": title[:200]} for value, title in options]}


@dataclass(frozen=True)
class _File:
    """A file in conflict."""

    git: Git
    path: str
    sides: Mapping[int, Side]
    """By git's number of the stage: 1 base, 2 ours, 3 theirs."""
    parts: Sequence[bytes | tuple[bytes, bytes, bytes]]
    """Its text: lines on which both agree, and places with their base, ours and theirs; empty: it is one whole."""
    is_bare: bool = False
    """Its last line has no end, on both sides."""

    @classmethod
    def of(cls, git: Git, path: str, sides: Mapping[int, Side]) -> _File:
        """With its places, if it is a text on both sides."""
        found = cls(git, path, sides, ())
        if not all(sides.get(stage, ("",))[0] in _LISTED for stage in (2, 3)):
            return found
        texts = [git.run("cat-file", "blob", sides[stage][1]) if stage in sides else b"" for stage in (1, 2, 3)]
        if any(len(text) > MAX_FILE or not _is_text(text) for text in texts):
            return found
        parts = _compared(git, *texts)
        lines = sum(side.count(b"\n") + 1 for part in parts if isinstance(part, tuple) for side in part)
        number = sum(isinstance(part, tuple) for part in parts)
        size = sum(len(side) for part in parts if isinstance(part, tuple) for side in part)
        is_short = 0 < number <= MAX_PLACES and lines <= MAX_LINES and size <= MAX_ASKED // 2
        is_bare = not any(text.endswith(b"\n") for text in texts[1:])
        return replace(found, parts=parts, is_bare=is_bare) if is_short else found

    @property
    def key(self) -> str:
        """What is in conflict."""
        return " ".join(self.sides[stage][1] if stage in self.sides else "-" for stage in (1, 2, 3))

    @property
    def places(self) -> dict[str, ConflictPlace]:
        """Its places by name: `a.txt:3`, by the line in the branch's version."""
        name, found, row = visible(self.path), dict[str, ConflictPlace](), 1
        if not self.parts:
            return {name: ConflictPlace(path=name, key=self.key)}
        for part in self.parts:
            if isinstance(part, tuple):
                title = f"{name}:{row}"
                title += f"#{len(found) + 1}" * (title in found)
                found[title] = ConflictPlace(path=name, key=self.key, index=len(found))
                row += part[1].count(b"\n")
            else:
                row += part.count(b"\n")
        return found

    def resolved(self, chosen: Sequence[Choice]) -> list[Choice] | None:
        """What has been chosen about its places, in order; None: something is open."""
        if 2 not in self.sides and 3 not in self.sides:
            return []  # gone on both sides, as both renamed it: nothing to choose
        known = {each.place: each for each in chosen}
        found = [known[place] for place in self.places.values() if place in known]
        return found if len(found) == len(self.places) else None

    def entry(self, chosen: Sequence[Choice]) -> Side | None:
        """What becomes of it; None: it is removed."""
        found = self.resolved(chosen) or []
        if not self.parts:
            return self.sides.get(3 if found and found[0].take == "theirs" else 2) if found else None
        taken, left = b"", iter(found)
        for part in self.parts:
            taken += _taken(part, next(left)) if isinstance(part, tuple) else part
        taken = taken.removesuffix(b"\n") if self.is_bare else taken
        return self.sides[2][0], self.git.text("hash-object", "-w", "--stdin", given=taken)

    def shown(self, into: str, what: str) -> list[str]:
        """The versions of its places, whole."""
        titles = ("as both began from (base)", f"as {into} has it (ours)", f"{what} (theirs)")
        if not self.parts:
            versions = [row for stage, title in enumerate(titles, 1) for row in self._about(stage, title)]
            return [visible(self.path), *versions]
        rows = list[str]()
        for name, part in zip(self.places, [each for each in self.parts if isinstance(each, tuple)], strict=True):
            rows.append(name)
            for title, side in zip(titles, part, strict=True):
                rows += _version(title, side)
        return rows

    def _about(self, stage: int, title: str) -> list[str]:
        """A version of the whole file: its lines, or what it is."""
        if stage not in self.sides:
            return [f"  {title}: there is no such file"]
        mode, name = self.sides[stage]
        if mode not in _LISTED:
            return [f"  {title}: a link or repository; git show {name}"]
        size = int(self.git.text("cat-file", "-s", name))
        text = self.git.run("cat-file", "blob", name) if size <= MAX_ASKED // 4 else b"\0"
        if _is_text(text) and text.count(b"\n") <= MAX_LINES // 4:
            return _version(title, text)
        return [f"  {title}: a file of {size:,} bytes; git show {name}"]


def _version(title: str, text: bytes) -> list[str]:
    rows = text.decode().removesuffix("\n").split("\n") if text else []
    return [f"  {title}:{'' if text else ' nothing'}", *(f"    | {row}" for row in rows)]


def _taken(part: tuple[bytes, bytes, bytes], choice: Choice) -> bytes:
    _, ours, theirs = part
    if choice.take == "both":
        return (ours if not ours or ours.endswith(b"\n") else ours + b"\n") + theirs
    if choice.take != OTHER:
        return theirs if choice.take == "theirs" else ours
    text = choice.text.replace("\r\n", "\n").encode()
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _compared(git: Git, base: bytes, ours: bytes, theirs: bytes) -> list[bytes | tuple[bytes, bytes, bytes]]:
    """The text of a merge: lines on which both agree, and places in conflict."""
    size = 7
    while any(mark * size in text for mark in _MARKS for text in (base, ours, theirs)):
        size += 1
    names = [f"{git.directory}/conflict.{name}" for name in _SIDES]
    for name, text in zip(names, (base, ours, theirs), strict=True):
        # A last line without an end would be joined to a mark.
        Path(name).write_bytes(text if not text or text.endswith(b"\n") else text + b"\n")
    options = ("-p", "--zdiff3", f"--marker-size={size}")
    try:
        whole = git.run("merge-file", *options, names[1], names[0], names[2])
    except GitFailed as failure:
        if not 0 < failure.exit_code < 128:
            raise
        whole = failure.output
    parts: list[bytes | tuple[bytes, bytes, bytes]] = [b""]
    sides, at = dict.fromkeys(_MARKS, b""), b""
    for row in whole.splitlines(keepends=True):
        mark = row[:1]
        if mark in _MARKS and row[:size] == mark * size:
            if mark == b">":
                parts += [(sides[b"|"], sides[b"<"], sides[b"="]), b""]
                sides = dict.fromkeys(_MARKS, b"")
            at = b"" if mark == b">" else mark
        elif at:
            sides[at] += row
        else:
            parts[-1] += row  # type: ignore[operator]
    return parts


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in text
