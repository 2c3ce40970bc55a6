"""Output files of common programs (cp, tee, sed -i, ...), determined from their arguments.

Used by `activities.provenance.shell_writes`. Each argument is the tuple of its possible values, empty if unknown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

Texts = tuple[str, ...]
MAX_COPIED = 1_000
"""Sources of one cp, mv or ln that are looked at: each counts for every directory that the target may be."""


def written_by_program(name: str, arguments: list[Texts]) -> list[Texts]:
    """The arguments, or parts of them, that name files the program writes; empty for an unknown program."""
    return _WRITERS[name](arguments) if name in _WRITERS else []


def _plain(arguments: list[Texts], with_value: str = "") -> list[Texts]:
    """Positional arguments; `with_value` lists the short options that take a value."""
    plain: list[Texts] = []
    skip = False
    for index, texts in enumerate(arguments):
        first = texts[0] if texts else ""
        if first == "--":
            return plain + arguments[index + 1 :]
        if skip:
            skip = False
        elif first.startswith("-") and first != "-":
            skip = len(first) == 2 and first[1] in with_value
        else:
            plain.append(texts)
    return plain


def _all(arguments: list[Texts]) -> list[Texts]:
    return _plain(arguments)


def _last(arguments: list[Texts]) -> list[Texts]:
    """The target of cp and the like; one path per source if the target is a directory."""
    target = _option("t", "target-directory")(arguments)
    sources = _plain(arguments, "tSmog")
    if not target:
        sources, target = sources[:-1], sources[-1:] if len(sources) > 1 else []
        if not target or (len(sources) == 1 and bool(target[0]) and not target[0][0].endswith("/")):
            return target
    names = [posixpath.basename(text.rstrip("/")) for texts in sources for text in texts][:MAX_COPIED]
    return [tuple(posixpath.join(folder, name) for folder in target[0] for name in names)]


def _option(*names: str) -> Callable[[list[Texts]], list[Texts]]:
    """A function that extracts the value of an option: `-o x`, `-ox`, `--output x`, `--output=x`."""

    def read(arguments: list[Texts]) -> list[Texts]:
        found: list[Texts] = []
        for index, texts in enumerate(arguments):
            word = texts[0] if texts else ""
            for name in names:
                flag = f"-{name}" if len(name) == 1 else f"--{name}"
                if word == flag:
                    found += arguments[index + 1 : index + 2]
                elif word.startswith(flag if len(name) == 1 else f"{flag}="):
                    found.append(tuple(text[len(flag) :].lstrip("=") for text in texts))
        return found

    return read


def _in_place(arguments: list[Texts]) -> list[Texts]:
    """sed -i and perl -i: the files after the script."""
    options = [texts[0] for texts in arguments if texts and texts[0].startswith("-")]
    if not any(re.match(r"-[nEerspw]*i|--in-place", option) for option in options):
        return []
    has_program = any(re.match(r"-\w*[ef]$|--expression|--file", option) for option in options)
    plain = _plain(arguments, "ef")
    return plain if has_program else plain[1:]


def _dd(arguments: list[Texts]) -> list[Texts]:
    return [tuple(text[3:] for text in texts) for texts in arguments if texts and texts[0].startswith("of=")]


def _archive(arguments: list[Texts]) -> list[Texts]:
    """tar, when it creates or updates an archive."""
    flags = (arguments[0] or ("",))[0].lstrip("-") if arguments else ""
    made = flags.isalpha() and any(letter in flags for letter in "cru")
    return arguments[1:2] if made and "f" in flags else []


def _first(arguments: list[Texts]) -> list[Texts]:
    return _plain(arguments)[:1]


_OUTPUT = _option("o", "output")
_WRITERS: dict[str, Callable[[list[Texts]], list[Texts]]] = {
    "tee": _all,
    "touch": lambda arguments: _plain(arguments, "drt"),
    "truncate": lambda arguments: _plain(arguments, "sr"),
    "mkdir": lambda arguments: _plain(arguments, "m"),
    "cp": _last,
    "mv": _last,
    "ln": _last,
    "install": _last,
    "dd": _dd,
    "sed": _in_place,
    "perl": _in_place,
    "tar": _archive,
    "zip": _first,
    "wget": _option("O", "output-document"),
    **dict.fromkeys(("curl", "sort", "cc", "gcc", "g++", "clang", "go", "rustc", "ld", "pandoc", "openssl"), _OUTPUT),
}
"""Programs that write files, and how to extract those files from their arguments."""
