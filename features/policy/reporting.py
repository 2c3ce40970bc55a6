"""What came of calls over some time, by rule; what another policy would have said of them; and rules that would have
spared people what they always approved. Pure: what was called is read by `reading`.

A proposal is a text to read, made of calls that people approved and never denied; it fits none of the others. Nothing
puts it into effect.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from plansurvive.features.policy.judging import Asker, Judged, host_of, judge
from plansurvive.features.policy.policy_file import read
from plansurvive.features.policy.resolving import PATHS
from plansurvive.features.policy.rule import Policy
from plansurvive.plans.model import Value

Outcome = Literal[
    "allowed", "judged", "approved", "overridden", "denied", "unanswered", "pending", "refused", "unruled"
]  # fmt: skip
"""Allowed by a rule, or by its judge; by people approved, by one of them alone in place of all who must, or denied; not
answered in time; not yet; refused by a rule; made without a rule or a person."""
OFTEN = 3
"""How often people approved something before a rule is proposed for it."""
SHOWN = 200
"""Differences that are listed."""
_SPECIAL = re.compile(r"[*?\[\]\\\x00-\x1f\"]")


class Seen(Value):
    """One call of a step, with what came of it."""

    plan: str
    step: str
    tool: str
    outcome: Outcome
    rules: list[str] = Field(default_factory=list)
    hash: str = ""
    by: list[str] = Field(default_factory=list, description="Who decided, by the names that they gave.")
    time: datetime


class RuleUse(Value):
    """What came of the calls that a rule decided."""

    rule: str = Field(description="Its name; empty: no rule.")
    calls: int
    outcomes: dict[Outcome, int]


class Proposal(Value):
    """A rule that would have allowed what people always approved."""

    rule: str = Field(description="As it would stand in policy.toml.")
    calls: int
    by: list[str]


class Difference(Value):
    """A call about which another policy would have said something else."""

    plan: str
    step: str
    tool: str
    was: str = Field(description="allow, ask or deny; empty: no rule.")
    would: str
    rules: list[str] = Field(default_factory=list)
    reason: str = ""


class Comparison(Value):
    """What another policy would have said."""

    hash: str
    same: int
    unknown: int = Field(default=0, description="Calls of segments, of which history has no arguments.")
    changed: dict[str, int] = Field(default_factory=dict, description="`ask -> allow`: how many calls.")
    differences: list[Difference] = Field(default_factory=list, description=f"The first {SHOWN}.")


class PolicyReport(Value):
    """What the policy was asked over some time."""

    since: datetime
    plans: int
    calls: int
    outcomes: dict[Outcome, int] = Field(default_factory=dict)
    hashes: list[str] = Field(default_factory=list, description="Of the files that answered, in order.")
    rules: list[RuleUse] = Field(default_factory=list)
    proposals: list[Proposal] = Field(default_factory=list)
    other: Comparison | None = Field(default=None, description="With `--with FILE`.")
    more: bool = Field(default=False, description="There are more plans than are read.")


Call = tuple[Seen, Judged | None]
"""A call, with what is judged of it; None: its arguments are not known."""
_DECIDED: Mapping[str, str] = {"allowed": "allow", "judged": "ask", "refused": "deny", "unruled": ""}


def report(calls: Sequence[Call], since: datetime, plans: int, other: Policy | None = None) -> PolicyReport:
    """What came of calls, oldest first."""
    by_rule: dict[str, Counter[Outcome]] = defaultdict(Counter)
    for seen, _ in calls:
        for rule in seen.rules or [""]:
            by_rule[rule][seen.outcome] += 1
    uses = [RuleUse(rule=rule, calls=count.total(), outcomes=dict(count)) for rule, count in by_rule.items()]
    return PolicyReport(
        since=since,
        plans=plans,
        calls=len(calls),
        outcomes=dict(Counter(seen.outcome for seen, _ in calls)),
        hashes=list(dict.fromkeys(seen.hash for seen, _ in calls if seen.hash)),
        rules=sorted(uses, key=lambda each: (not each.rule, -each.calls, each.rule)),
        proposals=list(proposals(calls)),
        other=_compared(calls, other) if other is not None else None,
    )


def proposals(calls: Sequence[Call]) -> Iterator[Proposal]:
    """Rules for what people approved often and never denied."""
    known = [(seen, judged) for seen, judged in calls if judged is not None]
    approved = [call for call in known if call[0].outcome == "approved"]
    others = [call for call in known if call[0].outcome in ("denied", "refused", "unanswered")]
    groups: dict[tuple[str, ...], list[tuple[Seen, Judged]]] = defaultdict(list)
    for call in approved:
        for group in _groups(call[1]):
            groups[group].append(call)
    texts = set[str]()
    for group, found in groups.items():
        text = _rule(group, found)
        if len(found) < OFTEN or text is None or text in texts:
            continue
        policy = read(text, datetime.now(UTC)).policy
        if policy is None or any(_allows(policy, judged) for _, judged in others):
            continue
        covered = [seen for seen, judged in approved if _allows(policy, judged)]
        if len(covered) >= OFTEN:
            texts.add(text)
            yield Proposal(rule=text, calls=len(covered), by=sorted({name for seen in covered for name in seen.by}))


def as_file(found: PolicyReport) -> str:
    """The proposals as a file to read."""
    head = (
        f"# Proposed from what people approved since {found.since:%Y-%m-%d %H:%M} UTC and never denied. Nothing reads"
        " this file:\n# copy into policy.toml what you agree with, and try it with `plan policy report --with FILE`.\n"
    )
    rows = [f"# {each.calls} calls, approved by {', '.join(each.by) or 'people without a name'}\n{each.rule}"
            for each in found.proposals]  # fmt: skip
    return "\n".join([head, *rows])


def in_words(found: PolicyReport) -> Iterator[str]:
    """The report as lines of text."""
    head = f"{found.calls:,} calls in {found.plans:,} plans since {found.since:%Y-%m-%d %H:%M} UTC"
    total = ", ".join(f"{count:,} {_WORDS[outcome]}" for outcome, count in found.outcomes.items())
    yield f"{head}: {total}" if total else head
    if found.more:
        yield "There are more plans than are read here; ask for a shorter time."
    for each in found.rules:
        what = ", ".join(f"{count:,} {_WORDS[outcome]}" for outcome, count in each.outcomes.items())
        yield f"  {each.rule or '(no rule)'}: {what}"
    if found.other is not None:
        changed = ", ".join(f"{count:,} {how}" for how, count in found.other.changed.items())
        same = f"{found.other.same:,} the same"
        unknown = f"{found.other.unknown:,} of express plans not known" if found.other.unknown else ""
        yield f"With the other policy ({found.other.hash[:12]}): {', '.join(filter(None, (changed, same, unknown)))}"
        for one in found.other.differences[:20]:
            how = f"{one.was or 'no rule'} -> {one.would or 'no rule'}"
            yield f"  {one.plan} {one.step} {one.tool}: {how}: {one.reason}"
    for proposal in found.proposals:
        yield f"Proposed, as {proposal.calls:,} such calls were approved and none denied:"
        yield from (f"  {row}" for row in proposal.rule.splitlines())


_WORDS: Mapping[Outcome, str] = {
    "allowed": "allowed", "judged": "allowed by a judge", "approved": "approved", "overridden": "overridden",
    "denied": "denied by a person",
    "unanswered": "not answered", "pending": "pending", "refused": "denied by a rule", "unruled": "without a rule",
}  # fmt: skip


def _compared(calls: Iterable[Call], other: Policy) -> Comparison:
    same, unknown, changed, found = 0, 0, Counter[str](), list[Difference]()
    for seen, judged in calls:
        if judged is None:
            unknown += 1
            continue
        was = _DECIDED.get(seen.outcome, "ask" if seen.rules else "")
        verdict = judge(other, judged)
        if verdict.decide == was:
            same += 1
            continue
        changed[f"{was or 'no rule'} -> {verdict.decide or 'no rule'}"] += 1
        if len(found) < SHOWN:
            found.append(
                Difference(plan=seen.plan, step=seen.step, tool=seen.tool, was=was, would=verdict.decide,
                           rules=list(verdict.rules), reason=verdict.reason[:500])
            )  # fmt: skip
    return Comparison(hash=other.hash, same=same, unknown=unknown, changed=dict(changed), differences=found)


def _allows(policy: Policy, judged: Judged) -> bool:
    return judge(policy, judged).decide == "allow"


def _groups(call: Judged) -> Iterator[tuple[str, ...]]:
    """What a call has in common with others that a rule could be about, the narrowest first."""
    if call.unknown:
        return
    if call.command:
        for words in [] if call.commands.why else call.commands.simple:
            if not words.runs_others:
                yield "command", call.tool, words.text
                if len(words.words) > 1 and not words.words[1].startswith("-"):
                    yield "commands", call.tool, " ".join(words.words[:2])
    elif call.args.get("url") is not None:
        if host := host_of(call.args["url"]):
            yield "host", call.tool, host, str(call.args.get("method") or "GET")
    elif (path := call.paths.get("path")) is not None:
        yield "path", call.tool, path
        if "/" in path:
            yield "folder", call.tool, path.split("/")[0]


def _rule(group: tuple[str, ...], found: Sequence[tuple[Seen, Judged]]) -> str | None:
    """The text of a rule about a group; None if none can be written that says no more than what was seen."""
    kind, tool, what = group[:3]
    if any(_SPECIAL.search(each) for each in group):
        return None
    distinct = {json.dumps(judged.args, sort_keys=True, default=str) for _, judged in found}
    if kind in ("commands", "folder") and len(distinct) < OFTEN:
        return None
    conditions: Mapping[str, Callable[[], str]] = {
        "command": lambda: f'command = ["{what}"]', "commands": lambda: f'command = ["{what} *"]',
        "path": lambda: f'args.path = "{what}"', "folder": lambda: f'args.path = "{what}/**"',
        "host": lambda: f'host = "{what}"\nargs.method = "{group[-1]}"',
    }  # fmt: skip
    name = f"{tool}: {what}{'/' if kind == 'folder' else ' ...' if kind == 'commands' else ''}"
    return f'[[rule]]\nname = "{name}"\ntool = "{tool}"\n{conditions[kind]()}\ndecide = "allow"\n'


def outcome_of(
    decide: str,
    code: str,
    *,
    judged: bool,
    denied: bool,
    approved: bool,
    overridden: bool,
    unanswered: bool,
    ended: bool,
) -> Outcome:
    """What came of a call, by the policy's last word, the code of its failure and what people decided."""
    if decide == "deny" or code == "POLICY_DENIED":
        return "refused"
    if decide == "allow":
        return "judged" if judged else "allowed"
    if denied:
        return "denied"
    if approved:
        return "overridden" if overridden else "approved"
    if decide == "ask":
        return "unanswered" if unanswered or ended else "pending"
    return "unruled"


def judged_of(
    tool: str, args: Mapping[str, Any], command: str, unknown: frozenset[str], asker: Asker | None = None
) -> Judged:
    """A call as another policy judges it; paths as they are written, if they stay in the workspace."""
    paths: dict[str, str | None] = {}
    for name in PATHS:
        if isinstance(args.get(name), str):
            text = args[name].removeprefix("./")
            paths[name] = None if text.startswith("/") or ".." in text.split("/") else text
    return Judged(tool, args, command, paths, unknown, asker)
