"""What the policy says of one call. Pure: what it needs to know of the world comes along with the call.

A rule fits, does not fit, or it is not known whether it does. Of those that fit, deny beats ask beats allow; if none
does, nothing is said, and the call is as it would be without a policy. Where it is not known whether a rule fits that
would ask or deny, the call asks, and so it does where it is not known of one that would allow and no other one does.

An allow needs each simple command of a command to fit. A deny or an ask needs one of them: what is denied alone is not
let through because something harmless stands beside it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from plansurvive.features.policy.consent import person_of
from plansurvive.features.policy.model import JudgedCall, Spoken
from plansurvive.features.policy.patterns import Pattern
from plansurvive.features.policy.policy_file import known_of
from plansurvive.features.policy.rule import COMMAND, Compiled, Condition, Decide, Policy, Rule
from plansurvive.features.policy.shell_words import Commands, Words, commands_of

MISSING = object()
"""Stands for an argument that is not given."""


@dataclass(frozen=True)
class Asker:
    """On whose behalf a call is made."""

    plan: tuple[str, ...] = ()
    """What the plan is called: its title, its id."""
    starter: str = ""
    """Who started it, as they said."""
    is_proven: bool = False
    """It is proven that they did."""
    origin: str = "person"
    """Who chose the call: person, llm, agent; empty: not known."""
    started: Spoken | None = None
    """Who started the plan, with a key that may prove it."""

    @classmethod
    def of(cls, said: JudgedCall | None) -> Asker | None:
        """What a plan says of itself with a call; None: nothing, as it was begun before its worker had a policy."""
        return cls(tuple(said.names), said.starter, False, said.origin, said.started) if said else None

    def who_started(self, policy: Policy) -> tuple[str, bool]:
        """The person of the policy who started the plan, or the name; and whether that is proven."""
        proven = "" if self.started is None else person_of(self.started, known_of(policy))
        return (proven, True) if proven else (policy.person(self.starter), self.is_proven)


@dataclass(frozen=True)
class Judged:
    """A call as it is judged."""

    tool: str
    args: Mapping[str, Any]
    """Resolved. MISSING or absent: not given; None where the worker has it in storage alone."""
    command: str = ""
    """Name of the argument that is a shell command; empty: there is none."""
    paths: Mapping[str, str | None] = field(default_factory=dict)
    """By argument, the path after links, relative to the workspace; None: it is outside, or cannot be a path."""
    unknown: frozenset[str] = frozenset()
    """Arguments whose values are not known here."""
    asker: Asker | None = None
    """None: not known."""
    texts: dict[str, tuple[list[str], bool]] = field(default_factory=dict, init=False, compare=False)
    """By argument, what patterns are compared with, and whether a path in it climbs; filled as rules ask."""

    @cached_property
    def commands(self) -> Commands:
        """What its command runs."""
        text = self.args.get(self.command)
        if self.command in self.unknown or not isinstance(text, str):
            return Commands((), (), "the command is not known here")
        return commands_of(text)

    def texts_of(self, name: str, value: Any) -> tuple[list[str], bool]:
        """What patterns are compared with of an argument with this value, and whether a path in it climbs."""
        found = self.texts.get(name)
        if found is None:
            texts = _texts(value)
            climbs = any(part == ".." for text in texts for part in text.replace("\\", "/").split("/"))
            found = self.texts[name] = texts, climbs
        return found

    def known_value(self, name: str) -> tuple[Any, bool]:
        """See `rule.Known`."""
        if name in self.unknown:
            return None, False
        value = self.args.get(name)
        return (None if value is MISSING else value), True

    def known_texts(self, name: str) -> Sequence[str] | None:
        """See `rule.Known`; of COMMAND, of what the shell command runs."""
        argument = name or self.command
        value, is_known = self.known_value(argument)
        if not is_known:
            return None
        if not argument or value is None:
            return ()
        if name == COMMAND:
            commands = self.commands
            if commands.why or commands.hidden:
                return None
            return [*commands.variants, *(words.text for words in commands.simple)]
        texts, climbs = self.texts_of(name, value)
        real = self.paths.get(name, "")
        if climbs or real is None:
            return None
        return [real, *texts, *(text.removeprefix("./") for text in texts)]


@dataclass(frozen=True)
class Verdict:
    """What the policy says. `decide` is empty if no rule fits."""

    decide: Decide | str
    rules: tuple[str, ...] = ()
    """The names of the rules that decided it, in the order of the file."""
    reason: str = ""
    """A sentence."""
    expires: int | None = None
    """Of an ask: for how many seconds a decision counts; None: until the call is made."""
    judges: tuple[Rule, ...] = ()
    """Of an ask: those of its rules whose judge may be asked to settle it."""


_NOTHING = Verdict("", (), "no rule of the policy fits: it is as without one")


class _Fit(StrEnum):
    NO = "no"
    YES = "yes"


class _Hidden(str):
    """Why it is not known: a program runs what its arguments say."""


_NO, _YES = _Fit.NO, _Fit.YES
_Answer = _Fit | str
"""NO, YES, or why it is not known."""


def judge(policy: Policy, call: Judged, settled: Collection[str] = ()) -> Verdict:
    """What the rules say of a call together. `settled`: rules whose ask their judge has taken back, as if they allowed.

    What is not known stays so: a judge speaks for its own rule alone.
    """
    answers = [
        (each, answer)
        for each in policy.of_tool(call.tool, None if call.asker is None else call.asker.plan).of(call)
        if (answer := _fits(policy, each, call)) is not _NO
    ]
    if not answers:
        return _NOTHING
    found: dict[str, list[str]] = {"deny": [], "ask": [], "allow": [], "unknown": [], "hidden": [], "doubted": []}
    doubts, is_written_out = dict[str, str](), False
    for each, answer in answers:
        name, decide = each.rule.name, each.rule.decide
        if answer is _YES and decide == "ask" and name in settled:
            found["allow"].append(name)
            continue
        if answer is _YES:
            found[decide].append(name)
            is_written_out = is_written_out or (decide == "allow" and each.rule.command is not None)
        else:
            otherwise = "hidden" if isinstance(answer, _Hidden) else "unknown"
            found["doubted" if decide == "allow" else otherwise].append(name)
            doubts[name] = f"it is not known whether rule '{name}' fits: {answer}"
    if found["deny"]:
        return Verdict("deny", tuple(found["deny"]), f"{_named(found['deny'])} of the policy denies it")
    if found["ask"]:
        asking = [each.rule for each in policy.rules if each.rule.name in found["ask"]]
        spans = [rule.expires for rule in asking if rule.expires is not None]
        judges = tuple(rule for rule in asking if rule.judge is not None)
        reason = f"{_named(found['ask'])} of the policy asks"
        return Verdict("ask", tuple(found["ask"]), reason, min(spans, default=None), judges)
    # An operator who has written a command out, with the program that it runs, has looked into it.
    unknown = found["unknown"] + ([] if is_written_out else found["hidden"])
    if unknown:
        return Verdict("ask", tuple(unknown), doubts[unknown[0]])
    if found["allow"]:
        return Verdict("allow", tuple(found["allow"]), f"{_named(found['allow'])} of the policy allows it")
    return Verdict("ask", tuple(found["doubted"]), doubts[found["doubted"][0]])


def host_of(url: object) -> str | None:
    """The host that http_request connects to; None for what it refuses, or where two parsers read different hosts."""
    import httpx  # lazily: `plan policy check` needs none

    if not isinstance(url, str):
        return None
    try:
        found, plain = httpx.URL(url), urlsplit(url).hostname or ""
    except (httpx.InvalidURL, ValueError):
        return None
    host = found.host.rstrip(".").lower()
    if found.scheme not in ("http", "https") or not host or found.userinfo or not found.raw_host.isascii():
        return None
    other = plain.rstrip(".").lower()
    return host if other in (host, found.raw_host.decode().rstrip(".").lower()) and url.isprintable() else None


def _fits(policy: Policy, each: Compiled, call: Judged) -> _Answer:
    """Whether a rule fits a call of one of its tools. What does not fit is no longer unknown."""
    unknown: _Answer = ""
    if each.is_about_asker:
        for answer in _of_asker(policy, each, call.asker):
            if answer is _NO:
                return _NO
            if answer is not _YES:
                unknown = unknown or answer
    if each.args:
        may_allow = each.rule.decide == "allow"
        for name, condition in each.args.items():
            answer = _argument(condition, name, call, may_allow)
            if answer is _NO:
                return _NO
            if answer is not _YES:
                unknown = unknown or answer
    if each.host:
        answer = _host(each.host, call)
        if answer is _NO:
            return _NO
        if answer is not _YES:
            unknown = unknown or answer
    if each.command:
        answer = _command(each, call)
        if answer is _NO:
            return _NO
        if answer is not _YES:
            unknown = unknown or answer
    return unknown or _YES


def _of_asker(policy: Policy, each: Compiled, asker: Asker | None) -> Iterator[_Answer]:
    rule = each.rule
    if asker is None:
        yield "the plan was begun before its worker had the policy, so its title, starter and origin are not known"
        return
    if rule.plan is not None:
        yield _yes(any(_any(each.plan, name) for name in asker.plan))
    if rule.origin is not None and not asker.origin:
        yield "it is not known who has read the plan"
    elif rule.origin is not None:
        yield _yes(asker.origin in rule.origin)
    if rule.starter is not None:
        named = {policy.person(name) for name in policy.written.members(rule.starter)}
        starter, is_proven = asker.who_started(policy)
        fits = bool(starter) and starter in named
        # Whoever starts a plan may say any name: that is no reason to let something through.
        if fits and rule.decide == "allow" and not is_proven:
            yield f"it is not proven that {asker.starter} started the plan"
        elif not fits and rule.decide != "allow" and not is_proven:
            yield "it is not proven who started the plan"
        else:
            yield _yes(fits)


def _argument(condition: Condition, name: str, call: Judged, may_allow: bool) -> _Answer:
    if call.unknown and name in call.unknown:
        return f"the value of `{name}` is not known here"
    value = call.args.get(name)
    if value is None or value is MISSING:
        return _NO
    if condition.most is not None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"`{name}` is not a number"
        return _YES if value <= condition.most else _NO
    texts, climbs = call.texts_of(name, value)
    if not condition.is_path:
        return _yes(all(_any(condition.patterns, text) for text in texts) if may_allow else
                    any(_any(condition.patterns, text) for text in texts))  # fmt: skip
    if name in call.paths:
        real = call.paths[name]
        if real is None:
            return f"`{name}` does not lead to a place in the workspace"
        written = [text.removeprefix("./") for text in texts]
        return _yes(
            _any(condition.patterns, real) or (not may_allow and any(_any(condition.patterns, w) for w in written))
        )
    if climbs:
        return f"`{name}` has a `..`, so it may lead elsewhere"
    fits = [_any(condition.patterns, text) for text in texts]
    return _yes(all(fits) if may_allow else any(fits))


def _texts(value: Any) -> list[str]:
    """What patterns are compared with: a text as it is, of a list each one, anything else as JSON."""
    if isinstance(value, list) and value:
        return [text for each in value for text in _texts(each)]
    return [value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)]


def _host(hosts: Sequence[Pattern], call: Judged) -> _Answer:
    if "url" in call.unknown:
        return "the URL is not known here"
    if call.args.get("url") is None:
        return _NO
    host = host_of(call.args["url"])
    return "the host of the URL cannot be determined" if host is None else _yes(_any(hosts, host))


def _command(each: Compiled, call: Judged) -> _Answer:
    if not call.command or (call.args.get(call.command) is None and call.command not in call.unknown):
        return _NO
    commands = call.commands
    if each.rule.decide != "allow":
        for text in commands.variants:
            if _any(each.command, text):
                return _YES
        return commands.why or (_hides(commands.hidden) if commands.hidden else _NO)
    unknown: _Answer = commands.why
    for words in commands.simple:
        if not _any(each.command, words.text):
            return _NO
        if words.runs_others and words.text not in each.exact:
            unknown = unknown or _hides(words)
    return unknown or _YES


def _hides(words: Words) -> _Hidden:
    return _Hidden(f"`{words.words[0][:100]}` runs what its arguments say")


def _any(patterns: Sequence[Pattern], text: str) -> bool:
    for each in patterns:  # noqa: SIM110 - no generator: every rule is asked before every call
        if each.fits(text):
            return True
    return False


def _yes(fits: bool) -> _Fit:
    return _YES if fits else _NO


def _named(names: Sequence[str]) -> str:
    return " and ".join(f"rule '{name}'" for name in names[:3]) + (
        f" and {len(names) - 3} more" if len(names) > 3 else ""
    )
