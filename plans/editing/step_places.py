"""Where the id of a step ends and the path of a field begins, as in `resize[cat.png].thumb.args.path=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from plansurvive.plans.definition.scopes import CATCH, FINALLY, UNDO
from plansurvive.plans.model import Step
from plansurvive.plans.model.step_fields import On, aliases

_PARTS = re.compile(r"(?:\[[^\]]*\]|[^.\[])+|\.|\[")
_OF_PARTS = frozenset(("tool", "args", "steps", "codes"))
"""Fields of a `catch` and an `undo`, after which no id of a step follows."""
MAX_PLACE = 1_600
"""Characters of an id and a path together: no message takes longer ones."""


class Setting(NamedTuple):
    """The place of a value, and the text of the value."""

    step_id: str
    path: str
    """Empty if no field is named."""
    value: str | None


def setting_of(text: str) -> Setting:
    """Split `STEP.FIELD=VALUE`. Keys of items, in brackets, may contain dots and equals signs.

    The field begins with the first part after the id that is the name of a field. A step inside a block that has the
    name of a field is not found this way.
    """
    place, value = _split(text)
    if len(place) > MAX_PLACE:
        return Setting(place, "", value)
    parts = [part for part in _PARTS.findall(place) if part != "."]
    fields = aliases(Step, On.EDIT)
    for index, part in enumerate(parts[1:], start=1):
        if part.split("[")[0] in fields and not _is_of_id(parts, index, fields):
            return Setting(".".join(parts[:index]), ".".join(parts[index:]), value)
    first, _, rest = place.partition(".") if "[" not in place.partition(".")[0] else (place, "", "")
    return Setting(first, rest, value)


def _is_of_id(parts: list[str], index: int, fields: Collection[str]) -> bool:
    """Whether `catch`, `finally` or `undo` belongs to an id: a step inside it is named, and then a field."""
    if parts[index] not in (CATCH, FINALLY, UNDO) or len(parts) < index + 3:
        return False
    following = parts[index + 1]
    return (
        not following.isdigit()
        and following not in _OF_PARTS
        and any(part.split("[")[0] in fields for part in parts[index + 2 :])
    )


def _split(text: str) -> tuple[str, str | None]:
    """The text before and after the first equals sign that is not in brackets."""
    depth, last = 0, text.rfind("]")
    for index, character in enumerate(text):
        if character == "=" and not depth:
            return text[:index], text[index + 1 :]
        if character == "[" and index < last:
            depth = 1
        elif character == "]":
            depth = 0
    return text, None
