"""The policy as it is written: rules, people, groups, delegations. Values; `policy_file` reads them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from plansurvive.features.policy.patterns import Pattern
from plansurvive.plans.model.identities import identity
from plansurvive.plans.text.spans import SECONDS_OF
from plansurvive.runtime.toml_lines import Lines

Decide = Literal["allow", "ask", "deny"]
GROUP = "group:"
COMMAND = ""
"""Stands in a selection for the shell command of a tool, which is no argument's name."""
MOST_REMEMBERED = 1_000
"""Tools and plans whose rules are remembered."""
_SPAN = re.compile(r"([0-9]{1,6})([smhd])")


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _seconds(value: object) -> object:
    found = _SPAN.fullmatch(value) if isinstance(value, str) else None
    if found is None or not int(found[1]):
        raise ValueError('write how long a decision counts, such as "30m", "4h" or "2d"')
    return int(found[1]) * SECONDS_OF[found[2]]


Text = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1_000)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_listed), Field(min_length=1, max_length=200)]
Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Expression(_Written):
    """A regular expression that the whole value of an argument must fit."""

    regex: Text


class Most(_Written):
    """The largest number that an argument may be."""

    max: Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Rule(_Written):
    """One rule. What is omitted matches every call."""

    name: Name
    decide: Decide
    tool: Texts = ("*",)
    command: Texts | None = None
    args: dict[Name, Texts | Expression | Most] = Field(default_factory=dict, max_length=50)
    host: Texts | None = None
    plan: Texts | None = None
    starter: Texts | None = None
    origin: Annotated[tuple[Literal["person", "llm", "agent"], ...], BeforeValidator(_listed)] | None = None
    by: Texts | None = None
    count: Annotated[int, Field(strict=True, ge=1, le=20)] = 1
    not_author: Annotated[bool, Field(strict=True)] = False
    expires: Annotated[int, BeforeValidator(_seconds)] | None = None
    override: Texts | None = None
    judge: Text | None = None


class Person(_Written):
    """Somebody who decides, by the login of a page or by a key of their own."""

    key: str = ""
    logins: Annotated[tuple[Text, ...], Field(max_length=20)] = ()


class Delegation(_Written):
    """Somebody decides for another one until a time."""

    from_: Name = Field(alias="from")
    to: Name
    until: datetime


class Written(_Written):
    """The content of a policy.toml."""

    rule: Annotated[tuple[Rule, ...], Field(max_length=1_000)] = ()
    people: dict[Name, Person] = Field(default_factory=dict, max_length=1_000)
    pages: dict[Name, str] = Field(default_factory=dict, max_length=100)
    groups: dict[Name, tuple[Name, ...]] = Field(default_factory=dict, max_length=200)
    delegation: Annotated[tuple[Delegation, ...], Field(max_length=200)] = ()

    def members(self, names: Texts) -> frozenset[str]:
        """The people that names and `group:NAME` stand for."""
        return frozenset(
            person
            for name in names
            for person in (self.groups.get(name.removeprefix(GROUP), ()) if name.startswith(GROUP) else (name,))
        )


@dataclass(frozen=True)
class Condition:
    """What an argument must be: one of some patterns, or at most a number."""

    patterns: tuple[Pattern, ...] = ()
    is_path: bool = False
    """The patterns are globs, in which `/` separates."""
    most: float | None = None


@dataclass(frozen=True)
class Compiled:
    """A rule, ready to be compared with calls."""

    rule: Rule
    tool: tuple[Pattern, ...] = ()
    command: tuple[Pattern, ...] = ()
    exact: frozenset[str] = frozenset()
    """The commands among `command` that have no wildcard."""
    args: Mapping[str, Condition] = field(default_factory=dict)
    host: tuple[Pattern, ...] = ()
    plan: tuple[Pattern, ...] = ()
    is_about_asker: bool = False
    """It says something of plan, starter or origin."""


class Known(Protocol):
    """What is known of the arguments of a call."""

    def known_texts(self, name: str, /) -> Sequence[str] | None:
        """What patterns are compared with; none: it is not given. None: any pattern may fit, or it is not known."""

    def known_value(self, name: str, /) -> tuple[Any, bool]:
        """Its value, None if it is not given; and whether it is known."""


class Selection:
    """The rules about one tool, by the beginnings of their patterns: of a hundred, a call is compared with a few.

    A rule is left out only where one of its conditions does not hold, for certain: then it does not fit.
    """

    def __init__(self, rules: Sequence[Compiled]) -> None:
        self.rules = tuple(rules)
        self._always = list[int]()
        self._by_text: dict[str, dict[str, list[int]]] = {}
        self._by_number: dict[str, list[tuple[float, int]]] = {}
        """By argument, the largest number that each rule about it lets it be, in their order."""
        for index, each in enumerate(self.rules):
            self._enter(index, each)
        for limits in self._by_number.values():
            limits.sort()
        self._lengths = {name: sorted({len(text) for text in found}) for name, found in self._by_text.items()}

    def _enter(self, index: int, each: Compiled) -> None:
        for name, condition in each.args.items():
            if condition.most is not None:
                self._by_number.setdefault(name, []).append((condition.most, index))
                return
        for name, patterns in [*((name, each.args[name].patterns) for name in each.args), (COMMAND, each.command)]:
            if patterns and all(pattern.begins for pattern in patterns):
                for pattern in patterns:
                    self._by_text.setdefault(name, {}).setdefault(pattern.begins, []).append(index)
                return
        self._always.append(index)

    def of(self, known: Known) -> Sequence[Compiled]:
        """The rules that may fit a call, in the order of the file."""
        if not (self._by_text or self._by_number):
            return self.rules
        found = set(self._always)
        for name, begins in self._by_text.items():
            texts = known.known_texts(name)
            if texts is None:
                found.update(index for each in begins.values() for index in each)
                continue
            for text in texts:
                for length in self._lengths[name]:
                    found.update(begins.get(text[:length], ()))
        for name, limits in self._by_number.items():
            value, is_known = known.known_value(name)
            if is_known and value is None:
                continue
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value  # no NaN
            begin = bisect_left(limits, (value, -1)) if is_known and is_number else 0
            if begin < len(limits):
                found.update(index for _, index in limits[begin:])
        return [self.rules[index] for index in sorted(found)] if found else ()


@dataclass(frozen=True)
class Policy:
    """The rules that count now."""

    rules: tuple[Compiled, ...] = ()
    written: Written = field(default_factory=Written)
    hash: str = ""
    """SHA-256 of the file, in hexadecimal digits: what decisions name."""

    _of_tools: dict[tuple[str, tuple[str, ...] | None], Selection] = field(default_factory=dict, compare=False)
    text: str = field(default="", compare=False, repr=False)
    """The file as it was read."""
    lines: Lines = field(default_factory=lambda: Lines(""))
    """Where its keys are."""

    def of_tool(self, tool: str, plan: tuple[str, ...] | None = None) -> Selection:
        """The rules that are about a tool, without those about plans of other names. `plan`: its names, if known.

        Remembered, as a plan makes many calls of a tool.
        """
        found = self._of_tools.get((tool, plan))
        if found is None:
            if len(self._of_tools) >= MOST_REMEMBERED:
                self._of_tools.clear()
            found = self._of_tools[tool, plan] = Selection([
                each
                for each in self.rules
                if any(pattern.fits(tool) for pattern in each.tool)
                and (not each.plan or plan is None or any(pattern.fits(name) for pattern in each.plan for name in plan))
            ])  # fmt: skip
        return found

    def person(self, name: str) -> str:
        """The person whose name or login this is; the name itself if it is nobody's."""
        mine = identity(name)
        return next(
            (each for each, person in self.written.people.items() if mine in map(identity, (each, *person.logins))),
            name,
        )


def as_people(data: Any) -> Any:
    """The tables with each person's short form, a key alone, written out."""
    people = data.get("people")
    if isinstance(people, dict):
        whole = {name: {"key": each} if isinstance(each, str) else each for name, each in people.items()}
        return {**data, "people": whole}
    return data
