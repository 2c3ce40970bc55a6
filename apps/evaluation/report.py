"""What a replay found: figures of then and now, and what differs. Pure; `plan evaluate --json` prints them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

from pydantic import Field

from plansurvive.apps.evaluation.answers import Key
from plansurvive.apps.evaluation.played import Asked, Called, Played
from plansurvive.client.differences.plan_diff import PlanDiff, plan_diff, plan_of
from plansurvive.client.prices import CostOf, cost, total
from plansurvive.plans.model import Value

MAX_CHANGES = 100
"""Differences that are told one by one; the others are counted."""
CHARACTERS = 300
"""Of one value in a difference."""
MANY_CALLS = 2_000
"""Up to so many calls the least difference is looked for; of more, only where they begin to differ."""
What = Literal["requests", "prompts", "answers", "calls", "results", "tokens", "end", "answer", "tasks", "plan"]


class Figures(Value):
    """What one run took."""

    requests: int = Field(description="LLM requests.")
    calls: int = Field(description="Tool calls.")
    failed: int = Field(description="Tool calls that gave no value.")
    prompt_tokens: int
    answer_tokens: int
    tokens: int
    cost: float | None = Field(default=None, description="In the currency of the prices; none: a price is not known.")
    seconds: float = Field(description="Of all LLM requests.")
    models: list[str] = Field(default_factory=list)
    end: str = Field(default="", description="Of an agent: how it ended.")


class Change(Value):
    """One difference."""

    what: What
    number: int | None = Field(default=None, description="Of the request or call, from 1.")
    was: str | None = Field(default=None, description="None: there was none.")
    now: str | None = Field(default=None, description="None: there is none.")


class Comparison(Value):
    """A run as it was recorded, and as it was replayed."""

    identical: bool
    differs: list[What] = Field(default_factory=list)
    was: Figures
    now: Figures
    changes: list[Change] = Field(default_factory=list)
    more: int = Field(default=0, description="Number of further changes.")
    plan: PlanDiff | None = Field(default=None, description="Of a plan that an LLM wrote.")
    problems: list[str] = Field(default_factory=list, description="Of the plan as it is written now.")
    refused: list[str] = Field(default_factory=list, description="Edits of people that the plan of now refuses.")
    stopped: str = Field(default="", description="Why the replay ended before the run did.")
    missing: str = Field(default="", description="The first call that the record has no answer to.")
    missed: int = Field(default=0, description="How many such calls there were.")
    repeated: int = Field(default=0, description="Calls answered with the answer to an earlier, equal one.")


class Replayed(Value):
    """The replay of one plan or agent."""

    id: str
    kind: Literal["agent", "plan"]
    parent: str = Field(default="", description="The plan whose step it works for, if that is replayed too.")
    check: Comparison = Field(description="With the recorded answers: whether this version does the same.")
    anew: Comparison | None = Field(default=None, description="With the LLM asked again.")
    error: str = Field(default="", description="Why it could not be played, or asked again.")

    @property
    def identical(self) -> bool:
        """Whether nothing differs."""
        return self.check.identical and not self.error and (self.anew is None or self.anew.identical)

    @property
    def shown(self) -> Comparison:
        """The comparison that was asked for."""
        return self.anew or self.check


class Unreadable(Value):
    """A run that could not be replayed, as its record cannot be read."""

    id: str
    code: str
    error: str


class Evaluation(Value):
    """What was replayed, and what it comes to."""

    identical: bool = Field(description="Nothing differs, and every record could be read.")
    model: str = Field(default="", description="The model asked; empty: the recorded answers were used.")
    prompt_set: str = ""
    runs: list[Replayed]
    was: Figures
    now: Figures
    same: int = Field(description="Runs that are identical.")
    unreadable: list[Unreadable] = Field(default_factory=list, description="Runs left out, and why.")


def compared(was: Played, now: Played, cost_of: CostOf, *, is_check: bool, was_stopped: bool) -> Comparison:
    """Compare a replay with the record. `was_stopped`: from outside, so that the replay ends where the record does.

    `is_check`: the record's own answers were played, so that what was asked must be the same, too.
    """
    changes = [*_requests(was, now, is_check=is_check), *_calls(was.calls, now.calls), *_ends(was, now, was_stopped)]
    diff = plan_diff(plan_of(was.plan), plan_of(now.plan)) if was.plan and now.plan else None
    has_plan = diff is not None and bool(diff.head or diff.steps or diff.more)
    if has_plan or was.problems != now.problems or (was.plan is None) != (now.plan is None):
        changes.append(Change(what="plan", was=_steps(was), now=_steps(now)))
    has_caught_up = was_stopped and len(now.requests) == len(was.requests) and now.missing in (None, was.missing)
    stopped, missing = ("", None) if has_caught_up else (now.stopped, now.missing)
    if stopped and not any(each.what == "end" for each in changes):
        changes.append(Change(what="end", was=was.end or None, now=stopped))
    return Comparison(
        identical=not changes,
        differs=list(dict.fromkeys(each.what for each in changes)),
        was=figures(was, cost_of),
        now=figures(now, cost_of),
        changes=changes[:MAX_CHANGES],
        more=max(0, len(changes) - MAX_CHANGES),
        plan=diff if has_plan else None,
        problems=now.problems,
        refused=[_short(each) for each in now.refused[:MAX_CHANGES]],
        stopped=stopped,
        missing=_call(missing),
        missed=now.missed if missing else 0,
        repeated=sum(each.repeated for each in now.calls),
    )


def figures(played: Played, cost_of: CostOf) -> Figures:
    """The figures of a run."""
    usage = played.usage
    return Figures(
        requests=len(played.requests),
        calls=len(played.calls),
        failed=sum(each.end != "done" for each in played.calls),
        prompt_tokens=usage.prompt_tokens,
        answer_tokens=usage.completion_tokens,
        tokens=usage.total_tokens,
        cost=total(cost(cost_of, each.model, each.usage) for each in played.requests),
        seconds=round(sum(each.seconds for each in played.requests), 3),
        models=list(dict.fromkeys(each.model for each in played.requests if each.model)),
        end=played.end,
    )


def summed(found: Iterable[Figures]) -> Figures:
    """The figures of several runs together."""
    each = list(found)
    return Figures(
        requests=sum(one.requests for one in each),
        calls=sum(one.calls for one in each),
        failed=sum(one.failed for one in each),
        prompt_tokens=sum(one.prompt_tokens for one in each),
        answer_tokens=sum(one.answer_tokens for one in each),
        tokens=sum(one.tokens for one in each),
        cost=total(one.cost for one in each),
        seconds=round(sum(one.seconds for one in each), 3),
        models=list(dict.fromkeys(name for one in each for name in one.models)),
    )


def _requests(was: Played, now: Played, *, is_check: bool) -> Iterator[Change]:
    if len(was.requests) != len(now.requests):
        yield Change(what="requests", was=str(len(was.requests)), now=str(len(now.requests)))
    for number, (one, other) in enumerate(zip(was.requests, now.requests, strict=False), 1):
        if is_check and one.question != other.question:
            yield Change(what="prompts", number=number, was=one.question, now=other.question)
        if one.answer != other.answer or one.code != other.code:
            yield Change(what="answers", number=number, was=_said(one), now=_said(other))
    if was.usage != now.usage:
        yield Change(what="tokens", was=f"{was.usage.total_tokens:,}", now=f"{now.usage.total_tokens:,}")


def _calls(was: Sequence[Called], now: Sequence[Called]) -> Iterator[Change]:
    for tag, i, j, m, n in _blocks([each.key for each in was], [each.key for each in now]):
        if tag == "equal":
            for one, other in zip(range(i, j), range(m, n), strict=True):
                if (was[one].end, was[one].result) != (now[other].end, now[other].result):
                    yield Change(what="results", number=other + 1, was=_result(was[one]), now=_result(now[other]))
            continue
        yield from (Change(what="calls", number=k + 1, was=_call(was[k].key)) for k in range(i, j))
        yield from (Change(what="calls", number=k + 1, now=_call(now[k].key)) for k in range(m, n))


def _blocks(was: list[Key], now: list[Key]) -> list[tuple[str, int, int, int, int]]:
    if max(len(was), len(now)) <= MANY_CALLS:
        return list(SequenceMatcher(None, was, now, autojunk=False).get_opcodes())
    pairs = enumerate(zip(was, now, strict=False))
    same = next((place for place, (one, other) in pairs if one != other), min(len(was), len(now)))
    return [("equal", 0, same, 0, same), ("replace", same, len(was), same, len(now))]


def _ends(was: Played, now: Played, was_stopped: bool) -> Iterator[Change]:
    if was_stopped or now.stopped:
        return  # what a run was when somebody stopped it says nothing about the answers
    if was.end != now.end:
        yield Change(what="end", was=was.end or None, now=now.end or None)
    if was.answer != now.answer:
        yield Change(what="answer", was=_short(was.answer), now=_short(now.answer))
    if was.tasks != now.tasks:
        yield Change(what="tasks", was=_short("; ".join(was.tasks)), now=_short("; ".join(now.tasks)))


def _steps(played: Played) -> str:
    steps = (played.plan or {}).get("steps") or []
    tools = Counter(str(each.get("tool") or "block") for each in steps if isinstance(each, dict))
    names = ", ".join(f"{count} {name}" for name, count in tools.items())
    problems = f"; {len(played.problems)} problems" if played.problems else ""
    return _short(f"{len(steps)} steps{f': {names}' if names else ''}{problems}")


def _said(each: Asked) -> str:
    if each.code:
        return each.code
    return _short(each.answer if isinstance(each.answer, str) else _json(each.answer))


def _call(key: Key | None) -> str:
    return _short(f"{key.tool} {key.args}") if key else ""


def _result(each: Called) -> str:
    return f"{each.end} {each.result}".strip()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _short(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}..."
