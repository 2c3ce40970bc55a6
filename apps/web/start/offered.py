"""What can be started, short enough for a phone: files by folder, templates, less what a filter leaves out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath

from plansurvive.client.requests.roots import Listed
from plansurvive.features.templates.listing import Listed as Template

FEW = 12
"""So many are listed as they are; of more, only those at the top of a folder's tree are unfolded."""


@dataclass(frozen=True)
class Folder:
    """The plan files of one folder."""

    root: Path
    name: str
    """Relative to its root; empty for the root itself."""
    files: tuple[Listed, ...]
    is_open: bool


@dataclass(frozen=True)
class Offered:
    """What the page lists."""

    find: str
    folders: list[Folder]
    templates: list[Template]
    rest: list[Template]
    """Templates that are folded away."""
    count: int
    """How many files and templates there are without the filter."""

    @property
    def has_filter(self) -> bool:
        """Whether there is so much that a filter helps."""
        return bool(self.find) or self.count > FEW


def offered(files: Sequence[Listed], templates: Sequence[Template], find: str = "") -> Offered:
    """Files and templates whose names have the words of `find`, in whatever case."""
    words = find.casefold().split()[:20]
    kept = [each for each in files if _has(each.name, words)]
    ordered = sorted(kept, key=lambda each: (str(each.root), _folder(each) != ".", _folder(each), each.name))
    grouped = [(*key, tuple(found)) for key, found in groupby(ordered, key=lambda each: (each.root, _folder(each)))]
    folders = [
        Folder(root, "" if name == "." else name, found, len(kept) <= FEW or (name == "." and len(found) <= FEW))
        for root, name, found in grouped
    ]
    named = [each for each in templates if _has(f"{each.name} {each.description}", words)]
    return Offered(find[:200], folders, named[:FEW], named[FEW:], len(files) + len(templates))


def _folder(each: Listed) -> str:
    return str(PurePosixPath(each.name).parent)


def _has(name: str, words: Sequence[str]) -> bool:
    return all(word in name.casefold() for word in words)
