"""Parts: what a feature keeps in a value of the core (a run, its options, a call ...), under the feature's name.

The core stores parts and passes them on without knowing what is in them. A part that has only its defaults is left
out of what is stored, so a feature costs nothing in the history of a plan that does not use it. A part whose feature
this process does not have stays in the value as it was read: nothing is dropped by passing through an older or smaller
worker.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

__all__ = ["Part", "Parted", "united"]


class Part(BaseModel):
    """What one feature keeps. Every field has a default; its value is a part that nobody has used yet."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)

    feature: ClassVar[str]
    """Name of the feature, as in `features.FEATURES`."""

    def unproven(self) -> str:
        """Of a run: discard what messages have brought and no step has used, as it is not known who sent it.

        Asked where decisions are signed, after a reset and of a start without a good signature. Returns for the log
        what it was, as in `3 events`; empty: nothing.
        """
        return ""


P = TypeVar("P", bound=Part)


@cache
def _unused(kind: type[Part]) -> Part:
    """A part of this kind that is compared and never changed."""
    return kind()


def _is_unused(part: Any) -> bool:
    if not isinstance(part, Part):  # as it was read
        return False
    unused = _unused(type(part))
    # What tells the two apart is in a field, usually: looked at first, as pydantic's comparison costs ten times that.
    return part.__dict__ == unused.__dict__ and part == unused


def _none_used(parts: dict[str, Any]) -> bool:
    return not parts or all(map(_is_unused, parts.values()))


class Parted(BaseModel):
    """Base of the values that have parts."""

    parts: dict[str, Any] = Field(
        default_factory=dict,
        exclude_if=_none_used,
        description="What features keep, by the name of the feature.",
    )

    core_parts: ClassVar[tuple[type[Part], ...]] = ()
    """Those that the core reads as well: they are parsed with the value, and a damaged one is refused with it."""

    @field_validator("parts")
    @classmethod
    def _parsed(cls, parts: dict[str, Any]) -> dict[str, Any]:
        known = {kind.feature: kind for kind in cls.core_parts if kind.feature in parts}
        return {**parts, **{name: kind.model_validate(parts[name]) for name, kind in known.items()}} if known else parts

    def keep(self, part: Part) -> None:
        """Put a part in the place of the one before; one that has only its defaults is none."""
        others = {name: each for name, each in self.parts.items() if name != part.feature}
        self.parts = others if _is_unused(part) else {**others, part.feature: part}

    def known_part(self, kind: type[P]) -> P | None:
        """The part of a feature if there is one, for those who only look. Raises as `part`."""
        return self.part(kind) if kind.feature in self.parts else None

    def part(self, kind: type[P]) -> P:
        """The part of a feature; changes to it are kept. Raises pydantic's ValidationError for one that is damaged."""
        found = self.parts.get(kind.feature)
        if found.__class__ is not kind and not isinstance(found, kind):
            found = self.parts[kind.feature] = kind.model_validate({} if found is None else found)
        return found


def united(one: Parted, other: Parted) -> dict[str, Any]:
    """The parts of both. Of the same field in both that of `other` counts; of mappings, each of their entries."""
    first, second = (
        {name: part.model_dump() if isinstance(part, Part) else part for name, part in each.parts.items()}
        for each in (one, other)
    )
    found = first | second
    for name in [each for each in first if each in second]:
        found[name] = first[name] | second[name]
        for key, value in second[name].items():
            if isinstance(value, dict) and isinstance(first[name].get(key), dict):
                found[name][key] = first[name][key] | value
    return found
