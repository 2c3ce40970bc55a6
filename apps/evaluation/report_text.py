"""What a replay found, as lines for a terminal. Every text of a plan or a model is made safe."""

from __future__ import annotations

from collections.abc import Iterator

from plansurvive.apps.evaluation.report import Change, Comparison, Evaluation, Figures, Replayed
from plansurvive.client.differences.plan_rows import plan_rows
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line

_WORDS = {
    "requests": "LLM requests", "prompts": "prompt", "answers": "answer", "results": "result", "calls": "tool calls",
    "tokens": "tokens", "end": "end", "answer": "final answer", "tasks": "task list", "plan": "plan",
}  # fmt: skip
_IN_FIGURES = ("requests", "tokens", "plan")
"""Differences that the figures, or the plan's own rows, show."""


def run_rows(found: Replayed) -> list[str]:
    """One replayed run: a line if nothing differs, else the figures and what differs."""
    who = f"{line(found.id)}{f' (of {line(found.parent)})' if found.parent else ''}"
    rows = [f"{who}: {_verdict(found)}"]
    if not found.check.identical and found.anew is not None:
        rows += ["  With the recorded answers, this version does not do the same:", *_rows(found.check, "    ")]
    if found.error:
        rows.append(f"  It could not be replayed: {line(found.error)}")
    if not found.shown.identical:
        rows += _rows(found.shown, "  ")
    return rows


def total_rows(found: Evaluation) -> list[str]:
    """What all runs come to, for more than one; and which could not be read."""
    count = len(found.runs)
    how = f"asked {line(found.model)}" if found.model else "with the recorded answers"
    how += f" with the prompt set {line(found.prompt_set)}" if found.prompt_set else ""
    head = f"{found.same} of {number_of(count, 'run')} identical, {how}"
    rows = [head, *(f"  {row}" for row in _figures(found.was, found.now))] if count > 1 else [head]
    return [*rows, *(f"not replayed: {line(each.id)}: {each.code}: {line(each.error)}" for each in found.unreadable)]


def costs(amount: float | None) -> str:
    """A cost, with as many digits as small amounts need."""
    return "unknown" if amount is None else f"{amount:,.4f}" if amount < 1 else f"{amount:,.2f}"


def _verdict(found: Replayed) -> str:
    shown = found.shown
    requests, calls = number_of(shown.now.requests, "LLM request"), number_of(shown.now.calls, "call")
    took = f"{requests}, {calls}, {shown.now.tokens:,} tokens"
    if found.identical:
        return f"identical: {took}"
    if shown.identical:
        return f"not identical: {took}"
    return "differs in " + ", ".join(dict.fromkeys(_WORDS[each] for each in shown.differs))


def _rows(found: Comparison, indent: str) -> Iterator[str]:
    rows = _figures(found.was, found.now)
    if found.stopped:
        rows.append(f"the replay ended early: {line(found.stopped)}")
    if found.missing:
        rows.append(f"not in the record: {line(found.missing)}{f' and {found.missed - 1} more' * (found.missed > 1)}")
    if found.repeated:
        rows.append(f"{number_of(found.repeated, 'call')} answered like an earlier, equal one")
    rows += [row for each in found.changes for row in _change(each) if each.what not in _IN_FIGURES]
    if found.more:
        rows.append(f"and {found.more} more differences")
    if found.plan is not None:
        rows += ["the plan that it writes now:", *(f"  {row}" for row in plan_rows(found.plan))]
    rows += [f"problem of that plan: {line(each)}" for each in found.problems]
    rows += [f"an edit of then is refused: {line(each)}" for each in found.refused]
    yield from (f"{indent}{row}" for row in rows)


def _figures(was: Figures, now: Figures) -> list[str]:
    rows = [
        ("LLM requests", f"{was.requests:,}", f"{now.requests:,}"),
        ("tool calls", f"{was.calls:,}", f"{now.calls:,}"),
        ("tokens", f"{was.tokens:,}", f"{now.tokens:,}"),
        ("cost", costs(was.cost), costs(now.cost)),
    ]
    if was.cost is None and now.cost is None:
        rows.pop()
    width = max(len(name) for name, _, _ in rows)
    return [f"{name.ljust(width)}  {one}" + (f" -> {other}" if one != other else "") for name, one, other in rows]


def _change(each: Change) -> Iterator[str]:
    if each.what == "calls":
        yield f"- {line(each.was)}" if each.was is not None else f"+ {line(each.now or '')}"
        return
    number = f" {each.number}" if each.number else ""
    yield f"{_WORDS[each.what]}{number}:"
    if each.was is not None:
        yield f"  - {line(each.was)}"
    if each.now is not None:
        yield f"  + {line(each.now)}"
