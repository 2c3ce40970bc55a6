"""Decides whether a path is protected, by `plans.files.protected_names` and the patterns of a worker. Pure.

Names are compared as the file systems do that take different spellings for the same file: letter case and Unicode forms
do not count, nor do invisible characters, trailing dots and spaces, what follows a colon (NTFS streams); a backslash
separates names. A pattern of a worker (PLANS_PROTECTED) is a name or names separated by `/`, with `*`, `?` and `[...]`
inside a name; it counts at any depth (with a leading `/` at the top only) and includes everything below it. `!` takes
away. The last pattern that fits decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from plansurvive.plans.files.protected_names import CATEGORIES, HARMLESS, Category

MAX_PATTERN_CHARACTERS = 200
_SEPARATOR = re.compile(r"[/\\]")
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u206f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Default_Ignorable_Code_Points that are not of category Cf: ext4 and HFS+ leave them out of comparisons."""
_GLOB = re.compile(r"[*?\[]")
_CLASS = r"\[!?[^\[\]]+\]"
_PARTS = re.compile(rf"{_CLASS}|.", re.DOTALL)
_TOOLS = Category(title="tools of this worker", why="run code in the worker itself", strict=True)
_ADDED = Category(title="PLANS_PROTECTED", why="do what PLANS_PROTECTED of this worker guards against", strict=True)


def folded(name: str) -> str:
    """The name as the most lenient file system compares it."""
    if name.isascii():
        text = name.lower()
    else:
        visible = "".join(char for char in _INVISIBLE.sub("", name) if unicodedata.category(char) != "Cf")
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    text = text.rstrip(". ")
    return (text.partition(":")[0].rstrip(". ") or text) if ":" in text else text


def pattern_problem(pattern: str) -> str:
    """Why a pattern of PLANS_PROTECTED cannot be used; empty if it can."""
    text = pattern.removeprefix("!")
    names = text.removeprefix("/").removesuffix("/").removesuffix("/**").split("/")
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        return f"is longer than {MAX_PATTERN_CHARACTERS} characters"
    if not all(char.isprintable() for char in pattern):
        return "contains a control or an invisible character"
    if "\\" in text:
        return "contains a backslash; separate names with `/`"
    if any(not folded(name) for name in names):
        return "has an empty name, or one of dots only; write a name such as `secrets` or `config/*.key`"
    if any("**" in name for name in names):
        return "has `**` in the middle; a pattern counts at any depth and includes everything below it"
    if any(is_unreadable(name) for name in names):
        return "has `[` or `]` that do not enclose characters such as `[0-9]`"
    return ""


def is_unreadable(name: str) -> bool:
    """Whether the brackets in a name of a pattern do not enclose characters."""
    if "[" in re.sub(_CLASS, "", name) or "]" in re.sub(_CLASS, "", name):
        return True
    try:
        re.compile(translated(name))
    except re.error:
        return True  # a range that ends before it begins
    return False


def is_exposed(parts: Sequence[str], *, at_top: bool) -> bool:
    """Whether programs that nobody listed may look for a new name: at the top of a workspace, or with a dot.

    `at_top`: the first directory or file that would be new is there.
    """
    return at_top or any(part.startswith(".") for part in parts)


@dataclass(frozen=True)
class ProtectedNames:
    """The list, changed by the patterns of a worker."""

    patterns: tuple[str, ...] = ()
    """Valid patterns: `pattern_problem` is empty."""
    files: tuple[str, ...] = ()
    """Absolute real paths that are protected besides, with what is below them: what defines the tools of the worker."""

    def reason(self, parts: Sequence[str], root: Sequence[str] = (), *, is_folder: bool = False) -> Category | None:
        """Why the path is protected; None if it is not.

        `parts`: its names from the workspace down. `root`: the names of the workspace's own path: one in a protected
        folder is protected as a whole. `is_folder`: a directory is to be created there; for the categories that are not
        strict, only the names of folders count then.
        """
        below = _names(parts)
        names = [*_names(root), *below]
        if not below:
            return None
        if any(names[: len(each)] == each for each in self._files):
            return _TOOLS
        found = self._builtin.find(names, is_folder)
        for rule in self._rules:
            if rule.fits(below if rule.anchored else names):
                found = None if rule.takes_away else (found or _ADDED)
        return found

    def is_strict(self, parts: Sequence[str]) -> bool:
        """Whether the path is protected from commands as well."""
        found = self.reason(parts)
        return found is not None and found.strict

    @cached_property
    def may_be_strict(self) -> Callable[[str], bool]:
        """Tells of a name, quickly, for scans of a workspace: False if it cannot make a path strictly protected.

        False for nearly all names, and only for ASCII without backslash. Remembered: the next scan sees the same names.
        """
        return lru_cache(65_536)(self._may_be_strict)

    def _may_be_strict(self, name: str) -> bool:
        if name[0] == "." or not name.isascii() or name[-1] in ". " or ":" in name or "\\" in name:
            return True
        return name.lower() in self._plain or self._globs.fullmatch(name.lower()) is not None

    def files_below(self, root: str) -> list[str]:
        """Those of `files` that lie in a directory."""
        return [path for path in self.files if path.startswith(root.rstrip("/") + "/")]

    @cached_property
    def _files(self) -> list[list[str]]:
        return [_names(path.split("/")) for path in self.files]

    @cached_property
    def _builtin(self) -> _Builtin:
        return _Builtin()

    @cached_property
    def _rules(self) -> tuple[_Rule, ...]:
        return tuple(_Rule.of(pattern) for pattern in self.patterns)

    @cached_property
    def _last_names(self) -> list[str]:
        """The last names of the strict patterns that do not begin with a dot."""
        texts = [text for each in CATEGORIES if each.strict for text in (*each.folders.split(), *each.files.split())]
        last = [text.rpartition("/")[2] for text in texts] + [rule.names[-1] for rule in self._rules]
        return [name for name in last if not name.startswith(".")]

    @cached_property
    def _plain(self) -> frozenset[str]:
        return frozenset(name for name in self._last_names if not _GLOB.search(name))

    @cached_property
    def _globs(self) -> re.Pattern[str]:
        return _either([name for name in self._last_names if _GLOB.search(name)])


DEFAULT = ProtectedNames()
"""The list as it is."""


@dataclass(frozen=True)
class _Rule:
    """One pattern of a worker."""

    names: tuple[str, ...]
    takes_away: bool
    anchored: bool

    @classmethod
    def of(cls, pattern: str) -> _Rule:
        text = pattern.removeprefix("!")
        names = text.removeprefix("/").removesuffix("/").removesuffix("/**").split("/")
        return cls(tuple(map(folded, names)), pattern.startswith("!"), text.startswith("/"))

    @cached_property
    def _text(self) -> re.Pattern[str]:
        return re.compile(rf"(?:^{'' if self.anchored else '|/'}){translated('/'.join(self.names))}(?:/|$)")

    def fits(self, names: Sequence[str]) -> bool:
        """Whether the path or a folder above it fits."""
        return self._text.search("/".join(names)) is not None


class _Patterns:
    """Patterns with their categories, prepared for a quick look: plain names, names with wildcards, several names."""

    def __init__(self, texts: Iterable[tuple[str, Category]], *, below: bool) -> None:
        """`below`: what is below a path that fits, fits as well."""
        every = [(text, category) for names, category in texts for text in names.split()]
        self._plain = {text: category for text, category in reversed(every) if not _GLOB.search(text)}
        single = [pair for pair in every if _GLOB.search(pair[0]) and "/" not in pair[0]]
        several = [pair for pair in every if "/" in pair[0]]
        self._globs = [category for _, category in single], _either([text for text, _ in single])
        self._paths = [category for _, category in several], _either([text for text, _ in several])
        self._below = below

    def of_name(self, name: str) -> Category | None:
        """The category of a name."""
        categories, pattern = self._globs
        found = pattern.fullmatch(name)
        return self._plain.get(name) or (categories[found.lastindex - 1] if found and found.lastindex else None)

    def of_path(self, names: Sequence[str]) -> Category | None:
        """The category of names that follow each other: anywhere in the path, or at its end."""
        categories, pattern = self._paths
        whole, start = "/".join(names), 0
        for name in names[:-1]:
            found = pattern.match(whole, start)
            if found and found.lastindex and (self._below or found.end() == len(whole)):
                return categories[found.lastindex - 1]
            start += len(name) + 1
        return None


class _Builtin:
    """The list of `plans.files.protected_names`."""

    def __init__(self) -> None:
        self._folders = _Patterns([(each.folders, each) for each in CATEGORIES], below=True)
        self._files = _Patterns([(each.files, each) for each in CATEGORIES], below=False)
        self._harmless = _Patterns([(HARMLESS, CATEGORIES[0])], below=False)
        self._of_folder = lru_cache(4_096)(self._folders.of_name)  # the changed paths of a command share their folders

    def find(self, names: Sequence[str], is_folder: bool) -> Category | None:
        """The category of a path; a strict one, if several fit."""
        found = [*map(self._of_folder, names), self._folders.of_path(names)]
        if not self._harmless.of_name(names[-1]):
            file = self._files.of_name(names[-1]) or self._files.of_path(names)
            found.append(file if file and (file.strict or not is_folder) else None)
        fitting = [category for category in found if category is not None]
        return next((category for category in fitting if category.strict), fitting[0] if fitting else None)


def _names(parts: Iterable[str]) -> list[str]:
    """The folded names of a path; a name with a backslash is several on some file systems."""
    return [folded(name) or name for part in parts for name in _SEPARATOR.split(part) if name]


def translated(pattern: str) -> str:
    """A pattern as a regular expression; its wildcards stay inside a name.

    What stands between two `*` is sought once, from left to right (atomic groups, as `fnmatch` has them): without that
    `*a*a*a*a*b` takes hours for a name of 255 `a`.
    """
    texts = [""]
    for part in _PARTS.findall(pattern):
        if part == "*":
            texts += [""] if texts[-1] or len(texts) == 1 else []
        elif part.startswith("["):
            chosen = re.escape(part[1:-1].removeprefix("!")).replace(r"\-", "-")
            texts[-1] += f"(?!/)[{'^' if part[1] == '!' else ''}{chosen}]"
        else:
            texts[-1] += "[^/]" if part == "?" else re.escape(part)
    first, *others = texts
    if not others:
        return first
    return first + "".join(f"(?>[^/]*?{text})" for text in others[:-1]) + f"[^/]*{others[-1]}"


def _either(patterns: Iterable[str]) -> re.Pattern[str]:
    """A pattern for a name, or names followed by `/` or nothing, that one of them fits, in the group of that number."""
    return re.compile("|".join(f"({translated(text)}(?![^/]))" for text in patterns) or r"(?!)")
