"""One line about what is inside a block or loop: `resize x 20: 18 done, 1 failed, 1 awaiting approval`."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.plans.model import Step
from plansurvive.plans.step_state import DENIALS
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.nested import InsideView

_ORDER = ("completed", "running", "skipped", "failed", *DENIALS.values())
_WORDS = {"completed": "done"}


def folded_line(name: str, inside: InsideView) -> str:
    """The line, with the name of the step; safe to print."""
    known = f"{inside.total:,}" if inside.total is not None else "?"
    if inside.kind == "each":
        return _joined(f"{line(name)} x {known}", [*numbers(inside.counts, inside.total), *_marks(inside)])
    if inside.kind == "repeat":
        head = f"{line(name)}: round {inside.began} of {known}"
        return ", ".join([head, *_told(inside.counts, ("completed", "running")), *_marks(inside)])
    if inside.kind == "call":
        return f"{line(name)}: {', '.join(_marks(inside)) or 'its `catch` runs'}"
    done = sum(inside.counts.get(word, 0) for word in ("completed", "skipped"))
    head = f"{line(name)}: {done} of {known} steps"
    if inside.kind == "switch":
        which = f"alternative {inside.alternative} of {inside.alternatives}" if inside.alternative else "no alternative"
        head = f"{line(name)}: {which}" + (f", {done} of {known} steps" if inside.total else "")
    return ", ".join([head, *_told(inside.counts, ("completed", "skipped", "ready", "blocked")), *_marks(inside)])


def inside_line(inside: InsideView) -> str:
    """The same without a name: of a loop, `20 items: 18 done, 1 failed`."""
    text = folded_line("", inside).removeprefix(":").strip()
    if inside.kind != "each":
        return text
    known, separator, rest = text.removeprefix("x ").partition(":")
    return f"{known} item{'s' * (known != '1')}{separator}{rest}"


def numbers(counts: Mapping[str, int], total: int | None = None) -> list[str]:
    """Counts in words: `18 done`, `1 failed`; with a `total`, also how many have not begun."""
    waiting = [word for word in counts if word not in _ORDER]
    found = [f"{counts[word]:,} {_WORDS.get(word, word)}" for word in (*_ORDER, *waiting) if counts.get(word)]
    left = (total or 0) - sum(counts.values())
    return [*found, f"{left:,} not started"] if left > 0 else found


def what(step: Step) -> str:
    """What a step is: the name of its tool, or the kind of block."""
    return step.tool or ("switch" if step.switch is not None else "block")


def _told(counts: Mapping[str, int], without: tuple[str, ...]) -> list[str]:
    return numbers({word: count for word, count in counts.items() if word not in without})


def _marks(inside: InsideView) -> list[str]:
    """What became of its failure, and whether its `finally` has begun."""
    marks = [] if inside.caught is None else [f"caught {line(inside.caught) or 'a failure'}"]
    return [*marks, "finally"] if inside.closing else marks


def _joined(head: str, parts: list[str]) -> str:
    return f"{head}: {', '.join(parts) or 'nothing to do'}"
