"""Ids of the steps inside blocks and loops: `resize[cat.png]`, `resize[cat.png].thumb`, `poll#3` (DESIGN 2.8)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache

MAX_KEY = 120
"""Characters of a key in an id; of a longer one the beginning and a hash remain."""
MAX_ID = 1_000
"""Characters of an id that messages and what is taken over from an earlier plan may name."""
MAX_ACTIVITY_ID = 1_000
"""Bytes of an activity's id, in UTF-8: the server refuses the whole workflow task of a longer one, over and over."""
_UNSAFE = re.compile(
    r"[\[\]%*\x00-\x20\x7f-\xa0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_LIKE_CALL = re.compile(r"([A-Za-z0-9_-]+)#(\d+)")
_CALL = re.compile(r"(.*)@(\d+)", re.DOTALL)
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")
_LAST = re.compile(r"(?:\[[^\]]*\]|#\d+|\.[^.\[\]#]+)\Z")


def item_key(key: str) -> str:
    """A key as it stands in ids: brackets, percent signs, blanks, control and invisible characters as `%XX`.

    Keys that differ give different texts.
    """
    text = _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode(errors="surrogatepass")), key)
    if len(text) <= MAX_KEY:
        return text
    return f"{text[: MAX_KEY - 13]}~{_hash(text)}"


def instance_id(step_id: str, key: str) -> str:
    """The id of one item's instance; `key` as `item_key` gives it."""
    return f"{step_id}[{key}]"


def round_id(step_id: str, number: int) -> str:
    """The id of one round of a `repeat`, from 1."""
    return f"{step_id}#{number}"


def inner_id(block_id: str, name: str) -> str:
    """The id of a step inside a block."""
    return f"{block_id}.{name}"


def slug(step_id: str, limit: int = 80) -> str:
    """An id as part of the id of a workflow: itself if it is plain, else shortened to plain characters with a hash."""
    if not _NOT_PLAIN.search(step_id) and len(step_id) <= limit:
        return step_id
    return f"{_NOT_PLAIN.sub('-', step_id)[: limit - 13].strip('-')}-{_hash(step_id)}"


def matches(pattern: str, step_id: str) -> bool:
    """Whether an id fits a pattern with `[*]` for any key, as in `resize[*].thumb`."""
    return _pattern(pattern).fullmatch(step_id) is not None


def is_pattern(text: str) -> bool:
    """Whether a text names several instances."""
    return "[*]" in text


def pattern_of(step_id: str) -> str:
    """The pattern that an instance fits with those beside it: `resize[*].thumb` of `resize[cat.png].thumb`."""
    return re.sub(r"\[[^\]]*\]", "[*]", step_id)


def covers(asked: str, step_id: str) -> bool:
    """Whether what a person names is a step: its id, a pattern that it fits, or that of something around it."""
    if asked.count("[") != asked.count("]"):
        return asked == step_id
    return _pattern(asked, inside=True).fullmatch(step_id) is not None


def call_name(step_id: str, number: int) -> str:
    """The name of a step's call, from 1: the id of its activity. Usually the step's id, `write#2` for a second call.

    With `@` where `#` would name a round: `poll#3@1` is the first call of the third round, `a[x]@2` a second call.
    """
    if _PLAIN.fullmatch(step_id):
        return step_id if number == 1 else f"{step_id}#{number}"
    return step_id if number == 1 and not _LIKE_CALL.fullmatch(step_id) else f"{step_id}@{number}"


def of_call(name: str) -> tuple[str, int]:
    """The step and the number of a call, by its name."""
    found = _LIKE_CALL.fullmatch(name) or _CALL.fullmatch(name)
    return (found[1], int(found[2])) if found is not None else (name, 1)


def activity_id(step_id: str, named: Callable[[str], str]) -> str:
    """The id of an activity for a step, which `named` makes of the step's id; of a shortened one if it is too long.

    Step ids are that long in loops inside each other whose keys are: those of two loops may have 480 bytes each.
    """
    whole = named(step_id)
    return whole if len(whole.encode()) <= MAX_ACTIVITY_ID else named(shortened(step_id))


def shortened(step_id: str) -> str:
    """The step's id in the ids of activities that would be too long with all of it: its beginning and a hash."""
    room = MAX_ACTIVITY_ID - 100  # for the hash, and for what else such an id has
    return f"{step_id.encode()[:room].decode(errors='ignore')}~{_hash(step_id)}"


def is_step_of(step_id: str, activity_name: str) -> bool:
    """Whether the call that an activity's id names is one of this step."""
    name, _ = of_call(activity_name)
    return name == step_id or name == shortened(step_id)


def lineage(step_id: str) -> Iterator[str]:
    """An id, and those of everything that contains it, innermost first: `b[x].y`, `b[x]`, `b`."""
    while step_id:
        yield step_id
        last = _LAST.search(step_id)
        step_id = step_id[: last.start()] if last is not None else ""


def around(step_id: str) -> Iterator[str]:
    """The ids of everything that contains an id, innermost first: `b[x]`, `b` of `b[x].y`."""
    found = lineage(step_id)
    next(found, None)
    return found


def is_inside(step_id: str, names: Collection[str]) -> bool:
    """Whether an id, its place in the plan, or that of anything that contains it, is one of these."""
    if not names:
        return False
    return any(name in names for each in {step_id, template_of(step_id)} for name in lineage(each))


def template_of(step_id: str) -> str:
    """The place in the plan of an instance's step: `resize.thumb` of `resize[cat.png].thumb`."""
    return re.sub(r"\[[^\]]*\]|#\d+", "", step_id)


@lru_cache(maxsize=100)
def _pattern(pattern: str, inside: bool = False) -> re.Pattern[str]:
    """The pattern as a regular expression. `inside`: also of what is inside the steps that fit it."""
    whole = r"\[[^\]]*\]".join(re.escape(part) for part in pattern.split("[*]"))
    return re.compile(whole + r"(?:[\[.#].*)?" if inside else whole, re.DOTALL)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
