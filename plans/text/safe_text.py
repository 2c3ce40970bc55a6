"""Makes any text safe to show in a terminal, and shows exactly what is unusual in it.

`safe` and `line` escape what could redraw or reorder a screen. `exact` is for those who decide on a text: everything
that a reader could miss or mistake is written as `\\u{200b}`, and nothing else ends up with that spelling, so the text
can be told from what is shown. `unusual` names what was found. Imports nothing of ours, so that a command can print
errors without loading the rest. Rules: Unicode UTS 39 (confusables), UAX 9 (bidirectional), UAX 44 (ignorable).

Rejected: `confusable_homoglyphs`, of an old Unicode, which flags ordinary Greek and Cyrillic. A false alarm costs a
second look.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from plansurvive.plans.text.lists import number_of

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
"""What no terminal shows, or what changes how the rest is shown. The joiners and variation selectors that emoji and
some scripts need are left; `exact` escapes them too."""
_ODD = re.compile("[^ -~\t\n]")
_WORD = re.compile(r"[^\W_]+")
_SPACES = re.compile(r"(?<=[^ \n]) {20,}|^ {80,}(?=[^ \n])", re.MULTILINE)
_TRAILING = re.compile(r"(?<! ) +(?=\n|\Z)")
_BLANK = re.compile(r"\n{6,}")
_MARKS = re.compile(r"\\(?=u\{)|⇥")
"""What `exact` itself writes, where it is part of the text."""
_LIKE_LATIN = frozenset(
    "аеорсухіјѕԁһԛԝӏьАВЕЗКМНОРСТХУІЈЅԌԚԜӀҮ"  # Cyrillic
    "ονυικραγωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"  # Greek
    "ոսցհօզքյԱՕՍ"  # Armenian
    "ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᏚᎢᏙᎳᏃᏀ"  # Cherokee
    "ꓐꓑꓒꓓꓔꓖꓗꓙꓚꓜꓝꓞꓟꓠꓡꓢꓣꓤꓦꓧꓨꓪꓫꓬꓮꓰꓲꓳꓴꓵ"  # Lisu
    "ⲟⲣⲥⲓⲕⲎⲒⲔⲘⲚⲞⲢⲤⲦⲬ"  # Coptic
)
"""Letters of other scripts that look like Latin ones, of Unicode's confusables.txt: a word of these alone is marked."""
_LIKE_ASCII = frozenset("ɑɡȷɩʟɢǀǃʘꞁ‐‑‒⁃−˗∕⁄⧸⧵∖⟋⟍∶꞉ˈʹʺʼ′‵＇‚․٠۰᛫ꓸꓹ∣❘⏐ǁ‖")
"""Letters and marks that look like ASCII ones but do not become them in a compatibility normalisation."""
_EAST_ASIAN = frozenset(("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "FULLWIDTH"))
"""Scripts that are written next to Latin without a space."""
_HARMLESS = ("<super>", "<sub>", "<circle>")
"""Kinds of Unicode decompositions that nobody mistakes for the plain character."""
CHARACTERS_KEPT = 10_000
"""How many characters are looked up only once: a text of a megabyte has few different ones."""
MAX_NAMED = 20
"""How many kinds of unusual characters a warning names."""


def safe(text: str) -> str:
    """Escape control, bidirectional and invisible characters as `\\uXXXX`, except tab and newline."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def line(text: str) -> str:
    """The text on one line, safe to show."""
    if text.isascii() and text.isprintable():
        return text  # as nearly all are
    return safe(" ".join(text.split("\n")).replace("\t", " "))


def quoted(step_id: str) -> str:
    """An id as a word of a shell command, safe to print: `'resize[cat.png]'`."""
    return shlex.quote(line(step_id))


def exact(text: str) -> str:
    """The text, of any number of lines, with everything unusual as `\\u{200b}`, a tab as ⇥.

    A long run of spaces or empty lines becomes `\\u{20*90}`. Different texts are shown differently.
    """
    if text.isascii() and not _needs_marks(text):
        return text.replace("\t", "⇥")
    kinds = _found(text)
    shown, at = [], 0
    for start, end in _pieces(text, kinds):
        shown.append(text[at:start].replace("\t", "⇥"))
        shown.append(f"\\u{{{ord(text[start]):x}" + (f"*{end - start}}}" if end - start > 1 else "}"))
        shown.append("\n" if text[start] == "\n" else "")
        at = end
    return "".join(shown) + text[at:].replace("\t", "⇥")


def exact_name(text: str) -> str:
    """The same on one line: the name of an argument."""
    return exact(text).replace("\n", "\\u{a}")


def unusual(text: str) -> list[str]:
    """What is unusual in a text, one sentence for each kind: `U+200B ZERO WIDTH SPACE: invisible, 2 times`."""
    if text.isascii() and not _needs_marks(text):
        return []
    counts: dict[str, int] = {}
    for index, kind in sorted(_found(text).items()):
        name = f"{_name(text[index])}: {kind}"
        counts[name] = counts.get(name, 0) + 1
    rows = [name + (f", {count} times" if count > 1 else "") for name, count in counts.items()]
    more = len(rows) - MAX_NAMED
    rows = rows[:MAX_NAMED] + ([f"and {more} more kinds of unusual characters"] if more > 0 else [])
    rows += [f"{len(match[0])} spaces in a row" for match in _SPACES.finditer(text)][:1]
    rows += [f"{len(match[0]) - 1} empty lines in a row" for match in _BLANK.finditer(text)][:1]
    trailing = sum(1 for _ in _TRAILING.finditer(text))
    return rows + ([f"spaces at the end of {number_of(trailing, 'line')}"] if trailing else [])


def json_text(text: str) -> str:
    """JSON text with everything unusual as `\\uXXXX`, which parsers turn back: exact, and nothing is hidden."""
    if text.isascii():
        return text.replace("\x7f", "\\u007f")
    shown, at = [], 0
    for index in sorted({*_found(text), *(match.start() for match in _UNSAFE.finditer(text))}):
        shown += [text[at:index], _units(text[index])]
        at = index + 1
    return "".join(shown) + text[at:]


def _units(char: str) -> str:
    """A character as JSON escapes: two of them for one outside the basic plane."""
    data = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def _needs_marks(text: str) -> bool:
    if "\\u{" in text or "\x7f" in text or _UNSAFE.search(text):
        return True
    return bool(_TRAILING.search(text) or _SPACES.search(text) or _BLANK.search(text))


def _pieces(text: str, kinds: dict[int, str]) -> Iterator[tuple[int, int]]:
    """Start and end of what is written as an escape, in order; they do not overlap."""
    spans = {index: index + 1 for index in kinds}
    spans |= {match.start(): match.end() for match in _MARKS.finditer(text)}
    spans |= {match.start(): match.end() for match in _SPACES.finditer(text)}
    spans |= {match.end() - 1: match.end() for match in _TRAILING.finditer(text)}
    spans |= {match.start(): match.end() for match in _TRAILING.finditer(text) if len(match[0]) >= 20}
    spans |= {match.start(): match.end() for match in _BLANK.finditer(text)}
    at = 0
    for start in sorted(spans):
        if start >= at:
            at = spans[start]
            yield start, at


def _found(text: str) -> dict[int, str]:
    """By index, what is unusual about a character."""
    odd = [(match.start(), match[0]) for match in _ODD.finditer(text)]
    kinds = {index: kind for index, char in odd if (kind := _kind(char))}
    for index in [index for index in kinds if "\uff01" <= text[index] <= "\uff5e" and not text[index].isalnum()]:
        if any("\u3040" <= char <= "\u9fff" for char in text[max(0, index - 1) : index + 2]):
            del kinds[index]  # the usual punctuation of East Asian texts
    stacked, last = 0, -2
    for index, char in odd:
        is_mark = unicodedata.category(char) in ("Mn", "Me")
        stacked, last = (stacked + 1 if last == index - 1 else 1) if is_mark else 0, index
        if stacked > 2:
            kinds.setdefault(index, "stacked on the character before")
    for match in _WORD.finditer(text):
        if not match[0].isascii():
            kinds |= _mixed(match[0], match.start())
    return kinds


@lru_cache(CHARACTERS_KEPT)
def _kind(char: str) -> str:
    """What is unusual about a character wherever it stands; empty: nothing."""
    category = unicodedata.category(char)
    if char in "\t\n":
        return ""
    if category == "Cc":
        return "a control character"
    if unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI") or char in (
        "\u200e\u200f\u061c"
    ):
        return "changes the direction of the text"
    if category in ("Co", "Cn", "Cs"):
        return {"Co": "of private use", "Cn": "not assigned", "Cs": "half a character"}[category]
    if category in ("Cf", "Zl", "Zp") or _UNSAFE.match(char) or char in "\u200c\u200d" or "\ufe00" <= char <= "\ufe0f":
        return "invisible"
    if category == "Zs":
        return "a space that is not the usual one"
    if category == "Me" or "\u0334" <= char <= "\u0338" or "\u20d0" <= char <= "\u20ff":
        return "written over the character before"
    return "looks like another character" if _is_like_ascii(char) else ""


def _is_like_ascii(char: str) -> bool:
    if char in _LIKE_ASCII:
        return True
    plain = unicodedata.normalize("NFKC", char)
    if plain == char or len(plain) != 1 or not plain.isascii():
        return False
    return not unicodedata.decomposition(char).startswith(_HARMLESS)


def _mixed(word: str, at: int) -> dict[int, str]:
    """The letters of a word that are not of its script, or that together look like a Latin word."""
    scripts = [_script(char) for char in word]
    known = {script for script in scripts if script} - _EAST_ASIAN
    if len(known) > 1:
        main = "LATIN" if "LATIN" in known else max(sorted(known), key=scripts.count)
        odd = [index for index, script in enumerate(scripts) if script and script not in {main} | _EAST_ASIAN]
        return {at + index: f"in a word of {main.capitalize()} letters" for index in odd}
    letters = [index for index, char in enumerate(word) if char > "\x7f"]
    if all(word[index] in _LIKE_LATIN for index in letters):
        return {at + index: "looks like another character" for index in letters}
    return {}


@lru_cache(CHARACTERS_KEPT)
def _script(char: str) -> str:
    """The script of a letter or digit, as the first word of its name; empty if it belongs to all."""
    if char.isascii():
        return "LATIN" if char.isalpha() else ""
    if unicodedata.category(char)[0] not in "LN":
        return ""
    name = unicodedata.name(char, "")
    return (
        ""
        if name.startswith(("SUPERSCRIPT", "SUBSCRIPT", "VULGAR", "MICRO", "FEMININE", "MASCULINE"))
        else (name.split(" ")[0])
    )


def _name(char: str) -> str:
    return f"U+{ord(char):04X} {unicodedata.name(char, '')}".rstrip()
