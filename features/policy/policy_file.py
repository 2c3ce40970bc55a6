"""Reads `policy.toml`, and says every mistake in it at once: where it is, what is wrong, and what to write instead.

There is one file, the operator's: in the state directory, or where PLANS_POLICY says. A file with a mistake is no
policy at all; a warning only says that a rule may not mean what it seems to.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from plansurvive.features.policy import patterns
from plansurvive.features.policy.model import KEY, NO_CALLS, Delegated, Known, People, Term, Terms
from plansurvive.features.policy.rule import (
    GROUP,
    Compiled,
    Condition,
    Decide,
    Expression,
    Most,
    Policy,
    Rule,
    Written,
    as_people,
)
from plansurvive.features.policy.settings import PolicySettings
from plansurvive.plans.definition.foreign_names import ARGUMENTS
from plansurvive.plans.definition.near_names import Foreign, Hints
from plansurvive.plans.signature import PAGE
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.toml_file import read_text, refusal, syntax_problem
from plansurvive.runtime.toml_lines import Lines
from plansurvive.runtime.toml_shape import KeyPath, misfits

FILE = "policy.toml"
"""Name of the file in the state directory, unless PLANS_POLICY names another."""
SETTING = "PLANS_POLICY"
MAY_DO = "let calls be made that no person decided about"
"""What others could do who may change the file."""
_OF_ASK = ("by", "count", "not_author", "expires", "override", "judge")
_MISSING: dict[KeyPath, str] = {
    ("name",): "every rule has a name", ("decide",): f"write one of {', '.join(get_args(Decide))}",
}  # fmt: skip
_TABLES = {
    "people": ("[people.ann]", 'logins = ["ann@example.org"]'),
    "pages": ("[pages]", 'board = "ed25519:..."'),
    "groups": ("[groups]", 'ops = ["ann", "bob"]'),
}
"""A table of each kind, and a line of it."""
_FOREIGN = Foreign({**{name: f"args.{name}" for name in ARGUMENTS},
              "match": "tool", "tools": "tool", "commands": "command", "action": "decide", "effect": "decide",
              "verdict": "decide", "approvers": "by", "users": "people", "hosts": "host", "rules": "rule",
              "arguments": "args", "timeout": "expires"})  # fmt: skip
"""Names that other programs have for the keys."""


@dataclass(frozen=True, order=True)
class Mistake:
    """What is wrong in a line."""

    line: int
    place: str
    """The key, with the rule's name."""
    text: str
    """What is wrong, and what to write."""

    def __str__(self) -> str:
        return f"line {self.line}, {self.place}: {self.text}" if self.place else f"line {self.line}: {self.text}"


@dataclass(frozen=True)
class Reading:
    """A policy.toml as it was read."""

    policy: Policy | None
    """None if there is a mistake."""
    mistakes: Sequence[Mistake] = ()
    warnings: Sequence[Mistake] = ()


def read(text: str, now: datetime) -> Reading:
    """The policy in a text, or what is wrong with it. `now`: to warn of delegations that have expired."""
    try:
        data = as_people(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        line, problem = syntax_problem(error, text)
        return Reading(None, [Mistake(line, "", f"{problem}; the rest is checked once this line is correct")])
    lines = Lines(text)
    names = [each.get("name") if isinstance(each, dict) else None for each in _list(data.get("rule"))]

    def mistake(path: Sequence[str | int], problem: str) -> Mistake:
        return Mistake(lines.of(path), _place(path, names), problem)

    try:
        written = Written.model_validate(data)
    except ValidationError as error:
        found = misfits(Written, data, error, examples=_TABLES, foreign=_FOREIGN)
        return Reading(None, sorted({mistake(*_of_rule(path, problem)) for path, problem in found}))
    compiled, wrong = list[Compiled](), list[Mistake]()
    for index, rule in enumerate(written.rule):
        problems = list[tuple[tuple[str | int, ...], str]]()
        compiled.append(_compiled(rule, problems))
        wrong += [mistake(("rule", index, *path), problem) for path, problem in problems]
    wrong += [mistake(path, problem) for path, problem in _problems(written)]
    warnings = sorted(mistake(path, problem) for path, problem in _doubts(written, now))
    if wrong:
        return Reading(None, sorted(set(wrong)), warnings)
    return Reading(
        Policy(tuple(compiled), written, hashlib.sha256(text.encode()).hexdigest(), text=text, lines=lines),
        (),
        warnings,
    )


def in_one_line(mistakes: Sequence[Mistake]) -> str:
    """The first ten, for an error; `plan policy check` shows all."""
    more = len(mistakes) - 10
    return "; ".join(map(str, mistakes[:10])) + (f"; and {more} more: `plan policy check`" if more > 0 else "")


def file_of(settings: Settings) -> Path:
    """Where the policy is."""
    return settings.of(PolicySettings).policy or settings.state_dir / FILE


def text_of(settings: Settings) -> str | None:
    """The text; None if there is no file and none is named. Raises SettingError, also if others may write it."""
    is_named = settings.of(PolicySettings).policy is not None
    return read_text(file_of(settings), SETTING, is_named=is_named, may_do=MAY_DO)


def policy_of(settings: Settings) -> Policy | None:
    """The policy; None if there is no file and none is named. Raises SettingError with what is wrong with it."""
    text = text_of(settings)
    if text is None:
        return None
    reading = read(text, datetime.now(UTC))
    if reading.policy is None:
        raise refusal(SETTING, file_of(settings), in_one_line(reading.mistakes))
    return reading.policy


def people_of(policy: Policy) -> People | None:
    """The keys of its people and pages; None if it has none."""
    written = policy.written
    people = {name: _hexadecimal(each.key) for name, each in written.people.items() if each.key}
    pages = {name: _hexadecimal(key) for name, key in written.pages.items()}
    return People(people=people, pages=pages) if people or pages else None


def terms_of(policy: Policy, names: Collection[str], wants: Sequence[Term] = ()) -> Terms | None:
    """What the rules of these names want that ask, and what the plan itself `wants`; None if it does not matter who
    approves.
    """
    rules = [each.rule for each in policy.rules if each.rule.name in names and each.rule.decide == "ask"]
    terms = [
        Term(
            rule=rule.name, by=sorted(policy.written.members(rule.by or ())), count=rule.count,
            not_author=rule.not_author, expires=rule.expires,
            override=sorted(policy.written.members(rule.override or ())),
        )
        for rule in rules
    ]  # fmt: skip
    terms += [each.model_copy(update={"by": sorted(policy.written.members(tuple(each.by)))}) for each in wants]
    return known_of(policy, terms) if any(each.demands for each in terms) else None


def known_of(policy: Policy, terms: Sequence[Term] = ()) -> Terms:
    """The people, pages and delegations of a policy, with what some rules want."""
    written = policy.written
    people = {
        name: Known(key=_hexadecimal(each.key) if each.key else "", logins=list(each.logins))
        for name, each in written.people.items()
    }
    pages = {name: _hexadecimal(key) for name, key in written.pages.items()}
    given = [Delegated.model_validate(each.model_dump(by_alias=True)) for each in written.delegation]
    return Terms(rules=list(terms), people=people, pages=pages, delegations=given)


def _hexadecimal(key: str) -> str:
    """A public key of the file, which is good, as signatures are verified with it."""
    return base64.b64decode(key.removeprefix(KEY))[-32:].hex()  # an Ed25519 SubjectPublicKeyInfo ends with the key


def _compiled(rule: Rule, problems: list[tuple[tuple[str | int, ...], str]]) -> Compiled:
    def made(key: tuple[str | int, ...], make: Any, texts: Sequence[str] | None) -> tuple[patterns.Pattern, ...]:
        found = list[patterns.Pattern]()
        for text in texts or ():
            try:
                found.append(make(text))
            except patterns.BadPattern as error:
                problems.append((key, f"{text!r}: {error}"))
        return tuple(found)

    args = dict[str, Condition]()
    for name, given in rule.args.items():
        if isinstance(given, Most):
            args[name] = Condition(most=given.max)
        elif isinstance(given, Expression):
            args[name] = Condition(made(("args", name), patterns.of_expression, [given.regex]))
        else:
            args[name] = Condition(made(("args", name), patterns.of_values, given), is_path=True)
    return Compiled(
        rule,
        tool=made(("tool",), patterns.of_names, rule.tool),
        command=made(("command",), patterns.of_commands, rule.command),
        exact=frozenset(each for each in rule.command or () if not re.search(r"[*?\[]", each)),
        args=args,
        host=made(("host",), _of_hosts, rule.host),
        plan=made(("plan",), patterns.of_names, rule.plan),
        is_about_asker=rule.plan is not None or rule.starter is not None or rule.origin is not None,
    )


def _of_hosts(pattern: str) -> patterns.Pattern:
    if "/" in pattern or ":" in pattern:
        raise patterns.BadPattern("write a host alone, such as `api.example.org` or `*.example.org`, not a URL or port")
    return patterns.of_names(pattern.removesuffix("."), ignores_case=True)


def _problems(written: Written) -> Iterator[tuple[tuple[str | int, ...], str]]:
    hints, people, groups = Hints(), list(written.people), list(written.groups)

    def unknown(name: str) -> str:
        if name.startswith(GROUP):
            group = name.removeprefix(GROUP)
            return (
                ""
                if group in groups
                else f"there is no group '{group}'{hints.question(group, groups) or _add('groups', group)}"
            )
        return (
            ""
            if name in people
            else f"no person is called '{name}'{hints.question(name, people) or _add('people', name)}"
        )

    names = dict[str, int]()
    for index, rule in enumerate(written.rule):
        at = ("rule", index)
        if rule.name in names:
            yield (
                (*at, "name"),
                f"rule {names[rule.name] + 1} has that name already; records name rules, so choose another",
            )
        names.setdefault(rule.name, index)
        for key in ("by", "override", "starter"):
            for name in getattr(rule, key) or ():
                if (key != "starter" or name.startswith(GROUP)) and (problem := unknown(name)):
                    yield (*at, key), problem
        if rule.by is not None and not any(unknown(each) for each in rule.by):
            members = written.members(rule.by)
            if rule.count > len(members):
                yield (*at, "count"), f"`by` names {len(members)} people; name more, or ask for fewer"
        for tool in rule.tool:
            if tool in NO_CALLS:
                yield (
                    (*at, "tool"),
                    f"a step of {tool} makes no call, so no rule is asked about it; remove {tool!r}, and write rules"
                    " for the steps behind it",
                )
        given = [key for key in _OF_ASK if key in rule.model_fields_set]
        for key in given:
            if rule.decide != "ask":
                yield (
                    (*at, key),
                    'it says how a person decides, and the rule does not ask; write `decide = "ask"` or remove it',
                )
            elif key == "override" and not (rule.by or rule.count > 1 or rule.not_author):
                yield (
                    (*at, key),
                    "there is nothing to override: say with `by`, `count` or `not_author` who must approve",
                )
    for group, members_of in written.groups.items():
        for name in members_of:
            if name not in people:
                yield ("groups", group), unknown(name) or f"'{name}' is a group; list its people"
    yield from _people(written)
    yield from _delegations(written, unknown)


def _people(written: Written) -> Iterator[tuple[tuple[str | int, ...], str]]:
    keys, logins = dict[str, str](), dict[str, str]()
    for name, person in written.people.items():
        if name.startswith(GROUP):
            yield ("people", name), f"the name of a person does not begin with {GROUP}"
        if name.startswith(PAGE):
            yield ("people", name), f"the name of a person does not begin with {PAGE}, which stands for a web page"
        if not person.key and not person.logins:
            yield ("people", name), "give a `key`, or the `logins` of a page"
        if person.key and (problem := key_problem(person.key)):
            yield ("people", name), problem
        elif person.key and (other := keys.setdefault(person.key, name)) != name:
            yield ("people", name), f"{other} has the same key; two names would count as two people"
        for login in person.logins:
            if (other := logins.setdefault(login.casefold(), name)) != name:
                yield ("people", name), f"{other} has the login {login} as well; two names would count as two people"
    for name, key in written.pages.items():
        if problem := key_problem(key):
            yield ("pages", name), problem
        elif key in keys:
            yield ("pages", name), f"it is the key of {keys[key]}, who could speak for every login of the page"


def _delegations(written: Written, unknown: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    to = dict[str, set[str]]()
    for each in written.delegation:
        to.setdefault(each.from_, set()).add(each.to)
    for index, each in enumerate(written.delegation):
        for key, name in (("from", each.from_), ("to", each.to)):
            if name.startswith(GROUP):
                yield ("delegation", index, key), "a person delegates to a person; name one"
            elif problem := unknown(name):
                yield ("delegation", index, key), problem
        if each.until.tzinfo is None:
            yield ("delegation", index, "until"), "give the time with its zone, as in 2026-12-24T00:00:00Z"
        reached, left = set[str](), [each.to]
        while left:
            name = left.pop()
            if name not in reached:
                reached.add(name)
                left += to.get(name, ())
        if each.from_ in reached:
            yield ("delegation", index), f"it leads back to {each.from_}; remove one of the delegations in the circle"


def _doubts(written: Written, now: datetime) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for index, rule in enumerate(written.rule):
        for pattern in rule.command or ():
            if re.search(r"[^ ]\*", pattern) or pattern.startswith("*"):
                other = re.sub(r"([^ *])\*", r"\1 *", pattern) if pattern != "*" else "git status *"
                text = (
                    f"{pattern!r}: a `*` that is not after a space fits more than one program or word; write {other!r}"
                )
                yield ("rule", index, "command"), text + " if that is not meant"
        conditions = (rule.command, rule.args, rule.host, rule.plan, rule.starter, rule.origin)
        if rule.decide == "allow" and rule.tool == ("*",) and not any(conditions):
            yield ("rule", index), "it allows every call; name a tool, or delete what it would let through"
        if rule.by is None and rule.count > max(len(written.people), 1):
            number = len(written.people)
            yield ("rule", index, "count"), f"[people] has {number}, too few to approve: name more, or ask for fewer"
    for index, each in enumerate(written.delegation):
        if each.until.tzinfo is not None and each.until <= now:
            yield ("delegation", index, "until"), "the time is over; the delegation does nothing, remove it"


def key_problem(key: str) -> str:
    """Why a text is no public key of a person or page; empty if it is."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    form = f'a key is written as "{KEY}" and the base64 of its SubjectPublicKeyInfo'
    if not key.startswith(KEY):
        return form
    try:
        found = load_der_public_key(base64.b64decode(key.removeprefix(KEY), validate=True))
    except (binascii.Error, ValueError, UnsupportedAlgorithm):
        return f"the key cannot be read; {form}"
    return "" if isinstance(found, Ed25519PublicKey) else f"the key is not of the kind Ed25519; {form}"


def _add(table: str, name: str) -> str:
    return f"; add it to [{table}]" if re.fullmatch(r"[\w.-]+", name) else ""


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _place(path: Sequence[str | int], names: Sequence[Any]) -> str:
    if path[:1] == ("rule",) and len(path) > 1 and isinstance(path[1], int):
        name = names[path[1]] if path[1] < len(names) else None
        rule = f"rule '{name}'" if isinstance(name, str) and name else f"rule {path[1] + 1}"
        return ": ".join([rule, ".".join(map(str, path[2:]))]) if len(path) > 2 else rule
    return ".".join(str(key + 1) if isinstance(key, int) else key for key in path)


def _of_rule(path: KeyPath, problem: str) -> tuple[KeyPath, str]:
    """What is wrong in a rule, with what rules have: a name, a decision, and arguments of several kinds."""
    if path[:1] == ("rule",) and path[2:3] == ("args",) and len(path) > 3:  # said once, whatever it could have been
        return path[:4], 'an argument is a glob, a list of globs, {regex = "..."} or {max = 10}'
    if path[:1] == ("rule",) and path[2:] == ("args",):
        return path, 'should name arguments, as in `args.path = "docs/**"`'
    if path[:1] == ("rule",) and path[2:] in _MISSING and problem == "it is missing":
        return path, f"{problem}; {_MISSING[path[2:]]}"
    return path, problem
