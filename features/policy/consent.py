"""Whether enough people have approved a call, by the terms of the rules that ask. Pure: the worker's layer decides with
it, and the plan shows with it how far a decision is.

A name counts as a person's once their own key, or a page with a login, has proven it. For one rule, approvals count in
the order in which they were made; each by a person, or a delegate of one, that the rule names. Two people of whom one
has delegated to the other never count twice, nor do two delegates of one person. Delegation is not transitive.

An author who is not verified could be anybody, also one of those who approve: so a rule with `not_author` needs one
more person for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from plansurvive.features.policy.model import Decided, Spoken, Term, Terms
from plansurvive.plans.model.identities import identity
from plansurvive.plans.signature import PAGE

UNVERIFIED = "UNVERIFIED"
MAY_NOT = "MAY_NOT_DECIDE"
MOST_NAMED = 10
MOST_SHOWN = 100
"""People of whom a view says whether they may approve."""
_WAY_OUT = "decide with a key of your own (`plan keys person NAME`), or on a page with a login"


@dataclass(frozen=True)
class OfRule:
    """How far the approvals are that one rule asks for."""

    term: Term
    needed: int
    counted: tuple[tuple[str, datetime], ...] = ()
    """The people who have approved, and when."""
    refused: dict[int, str] = field(default_factory=dict)
    """By its place among the approvals, why one does not count; it begins with a code."""
    left: tuple[str, ...] = ()
    """The people named by the rule who could still approve; empty: it names none."""
    alone: dict[int, str] = field(default_factory=dict)
    """By its place among the approvals, each override: empty if it is enough, else why it is not."""

    @property
    def is_overridden(self) -> bool:
        """Whether somebody has approved alone who may."""
        return "" in self.alone.values()

    @property
    def missing(self) -> int:
        """How many more people must approve."""
        return 0 if self.is_overridden else max(0, self.needed - len(self.counted))

    @property
    def expires(self) -> datetime | None:
        """When the first of the approvals counts no more."""
        if self.term.expires is None or not self.counted:
            return None
        return min(time for _, time in self.counted) + timedelta(seconds=self.term.expires)

    @property
    def text(self) -> str:
        """A sentence: who has approved, and who may still."""
        by = "".join(f", by {name} at {time:%H:%M}" for name, time in self.counted)
        said = f"{self.term.title}: {len(self.counted)} of {self.needed}{by}"
        if self.is_overridden:
            return f"{self.term.title}: overridden{by}"
        if not self.missing:
            return said
        if (more := self.needed - self.term.count) > 0:
            said += f" ({self.term.count}, and {more} more as it is not proven who started or edited it)"
        said += f"; {', '.join(self.term.override[:10])} may override it" if self.term.override else ""
        if self.term.by and len(self.left) < self.missing:
            return f"{said}; {len(self.left)} of those who may are left, which is too few: {self._way_out}"
        if self.missing == len(self.left) <= MOST_NAMED:
            return f"{said}; {' and '.join(filter(None, (', '.join(self.left[:-1]), self.left[-1])))} must approve"
        among = ", ".join(self.left[:MOST_NAMED]) or "the people of the policy"
        return f"{said}; {self.missing} more of {among} must approve"

    @property
    def _way_out(self) -> str:
        """What to do about too few people who may approve."""
        where = "the policy" if self.term.rule else "`approval.by` of the plan"
        way = f"name more people in {where}"
        if self.needed > self.term.count and self.needed - self.term.count >= self.missing - len(self.left):
            return f"start or edit it with a key of your own (`plan keys person NAME`), or {way}"
        return way if self.term.count <= len(self.term.by) else f"{way}, or write a lower `count`"


@dataclass(frozen=True)
class Standing:
    """How far the approvals of a call are."""

    rules: tuple[OfRule, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every rule that asks has enough."""
        return not any(each.missing for each in self.rules)

    @property
    def needed(self) -> int:
        """How many people the strictest rule needs."""
        return max((each.needed for each in self.rules), default=1)

    @property
    def missing(self) -> int:
        """How many more people must approve, at least."""
        return max((each.missing for each in self.rules), default=0)

    @property
    def text(self) -> str:
        """A sentence for each rule that has not enough; of one that is complete, for all."""
        open_ones = [each.text for each in self.rules if each.missing]
        return "; ".join(open_ones or [each.text for each in self.rules])

    def why_not(self, place: int) -> str:
        """Why the approval at this place counts for no rule that still needs one; empty if it counts for one."""
        demanding = [each for each in self.rules if each.term.demands] or self.rules
        reasons = [each.refused.get(place, "") for each in demanding]
        return "" if any(not each for each in reasons) else next(iter(reasons), "")

    def why_not_alone(self, place: int) -> str:
        """Why the override at this place is enough for no rule that still needs somebody; empty if it is for one."""
        reasons = [each.alone.get(place, "") for each in self.rules if each.term.demands]
        return "" if any(not each for each in reasons) else next(iter(reasons), "")


def in_words(term: Term) -> str:
    """Who must approve, before anybody has: `the plan itself: 2 of ann, group:release; none of them an author`."""
    who = f"{term.count} of {', '.join(term.by[:10])}" if term.by else f"{term.count} of the people of the policy"
    return f"{term.title}: {who}{'; none of them an author' if term.not_author else ''}"


def person_of(spoken: Spoken, terms: Terms) -> str:
    """The person who has spoken, as far as that is proven and the policy knows them; empty: not proven."""
    if spoken.signed.startswith(PAGE):
        page = spoken.signed.removeprefix(PAGE)
        if not spoken.verified or not spoken.key or terms.pages.get(page) != spoken.key:
            return ""
        mine = identity(spoken.by)
        return next((name for name, each in terms.people.items() if mine in map(identity, each.logins)), "")
    known = terms.people.get(spoken.signed)
    return spoken.signed if known and known.key and known.key == spoken.key else ""


def standing(terms: Terms, approvals: Sequence[Decided], authors: Sequence[Spoken], now: datetime | None) -> Standing:
    """How far these approvals are. `now`: of the call's first attempt, by which they may have expired; None: they are
    used already, or nobody asks for that.
    """
    proven, unproven = _authors(terms, authors)
    names = [person_of(each, terms) for each in approvals]
    return Standing(tuple(_of_rule(term, terms, approvals, names, proven, unproven, now) for term in terms.rules))


def who_may(
    terms: Terms, term: Term, approvals: Sequence[Decided], authors: Sequence[Spoken], at: datetime
) -> dict[str, str]:
    """By person whom a rule is about, empty if an approval of theirs would count now, else why it would not.

    `at`: delegations count until their end as of that time.
    """
    proven, unproven = _authors(terms, authors)
    names = [person_of(each, terms) for each in approvals]
    delegates = [each.to for each in terms.delegations if each.from_ in term.by]
    found = dict[str, str]()
    for name in list(dict.fromkeys([*term.by, *delegates] or terms.people))[:MOST_SHOWN]:
        latest = max([at, *(each.time for each in approvals)])
        votes = [*approvals, Decided(by=name, time=latest)]
        of_rule = _of_rule(term, terms, votes, [*names, name], proven, unproven, None)
        found[name] = of_rule.refused.get(len(approvals), "").partition(": ")[2]
    return found


def _authors(terms: Terms, authors: Sequence[Spoken]) -> tuple[set[str], int]:
    """The authors who are proven, and how many others there are."""
    proven = {name for each in authors if (name := person_of(each, terms))}
    return proven, len({identity(each.by) for each in authors if not person_of(each, terms)})


def _of_rule(
    term: Term, terms: Terms, approvals: Sequence[Decided], names: Sequence[str], authors: set[str], unproven: int,
    now: datetime | None,
) -> OfRule:  # fmt: skip
    """`names`: whose each of the approvals is, as far as that is proven."""
    needed = term.count + (unproven if term.not_author else 0)
    counted, principals, refused, alone = list[tuple[str, datetime]](), list[str](), dict[int, str](), dict[int, str]()
    order = sorted(range(len(approvals)), key=lambda place: approvals[place].time)
    for place in order:
        vote = approvals[place]
        name = names[place] if term.demands else vote.by or "somebody"
        if vote.override and term.demands:
            alone[place] = _not_alone(term, vote, name, now)
            if not alone[place]:
                counted.append((name, vote.time))
                continue
        if why := _unfit(term, terms, vote, name, authors, now):
            refused[place] = why
            continue
        if not term.demands:
            counted.append((name, vote.time))
            continue
        free = [each for each in _principals(term, terms, name, vote.time, authors) if each not in principals]
        other = next((done for done, _ in counted if _is_same(terms, done, name, vote.time)), "")
        if other or not free:
            refused[place] = f"{MAY_NOT}: {name} counts as one with {other or 'another delegate'}, who has approved"
            if other == name:
                refused[place] = f"ALREADY_DECIDED: {name} has approved"
            continue
        counted.append((name, vote.time))
        principals.append(free[0])
    done = {name for name, _ in counted}
    barred = done | set(principals) | (authors if term.not_author else set())
    left = tuple(name for name in term.by if name not in barred)
    return OfRule(term, needed, tuple(counted), refused, left, alone)


def _not_alone(term: Term, vote: Decided, name: str, now: datetime | None) -> str:
    """Why an override is not enough for a rule; empty if it is. No delegate overrides; an author may, if named."""
    if _is_expired(term, vote, now):
        return f"APPROVAL_EXPIRED: {vote.by or 'somebody'} has approved too long ago"
    if not name:
        return f"{UNVERIFIED}: it is not proven that {vote.by or 'the sender'} is in [people] of the policy; {_WAY_OUT}"
    if name not in term.override:
        who = f"{', '.join(term.override[:10])} may override it" if term.override else "no one may override it"
        return f"{MAY_NOT}: {term.title}: {who}; {name} may not"
    return ""


def _is_expired(term: Term, vote: Decided, now: datetime | None) -> bool:
    return now is not None and term.expires is not None and (now - vote.time).total_seconds() > term.expires


def _unfit(
    term: Term, terms: Terms, vote: Decided, name: str, authors: set[str], now: datetime | None
) -> str:  # fmt: skip
    """Why an approval cannot count for a rule, whatever others there are."""
    if _is_expired(term, vote, now):
        return f"APPROVAL_EXPIRED: {vote.by or 'somebody'} has approved too long ago"
    if not term.demands:
        return ""
    if not name:
        return f"{UNVERIFIED}: it is not proven that {vote.by or 'the sender'} is in [people] of the policy; {_WAY_OUT}"
    if term.not_author and name in authors:
        return f"{MAY_NOT}: {name} is an author of the call, and {term.title} wants others to decide"
    if not _principals(term, terms, name, vote.time, authors):
        return f"{MAY_NOT}: {term.title} lets {', '.join(term.by[:10])} decide, and {name} is not among them"
    return ""


def _principals(term: Term, terms: Terms, name: str, time: datetime, authors: set[str]) -> list[str]:
    """For whom a person decides under a rule: for themselves, or for those who have delegated to them."""
    if not term.by or name in term.by:
        return [name]
    barred = authors if term.not_author else set()
    return [each for each in _delegating(terms, name, time) if each in term.by and each not in barred]


def _delegating(terms: Terms, name: str, time: datetime) -> Iterator[str]:
    return (each.from_ for each in terms.delegations if each.to == name and time < each.until)


def _is_same(terms: Terms, one: str, other: str, time: datetime) -> bool:
    """Whether two people count as one: they are one, or one of them has delegated to the other."""
    return one == other or one in _delegating(terms, other, time) or other in _delegating(terms, one, time)
