"""Which files a plan's runs may replace without being asked: the patterns of its `owns`. Pure.

A pattern is a path relative to the workspace. Inside a name, `*`, `?` and `[...]` stand for characters; `**` stands for
any number of directories; a `/` at the end for everything below. A pattern names exactly what it says: `report.md` is
the one at the top, `**/report.md` any. Letter case counts. Where a link leads counts, not where it lies.

Not part of a call's digest, as they do not change what it does. Rejected: waiving all files that an earlier run of the
schedule wrote, which is listed nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from plansurvive.plans.files.name_patterns import is_unreadable, translated
from plansurvive.plans.model import Plan, Problem

CODE = "BAD_OWNS"


def is_owned(patterns: Iterable[str], path: str) -> bool:
    """Whether one of the patterns fits a path relative to the workspace, links resolved. A bad pattern fits none."""
    names = path.split("/")
    return any(not pattern_problem(pattern) and _fits(_parts(pattern), names) for pattern in patterns)


def pattern_problem(pattern: str) -> str:
    """Why a pattern cannot be used; empty if it can."""
    names = pattern.split("/")
    if pattern.startswith(("/", "~")) or ".." in names:
        return "leads out of the workspace; write a path below it, such as `report.md` or `out/**`"
    if not pattern.isprintable():
        return "contains a control or an invisible character"
    if "\\" in pattern:
        return "contains a backslash; separate names with `/`"
    if pattern.startswith("!"):
        return "begins with `!`; list what the plan owns, nothing is taken away from it"
    if any(not name.strip(".") for name in names[:-1]) or (not names[-1].strip(".") and names[-1]):
        return "has an empty name, or one of dots only; write `report.md`, `out/*.csv` or `out/**`"
    if any("**" in name and name != "**" for name in names):
        return "has `**` inside a name; it stands for whole directories, as in `out/**/*.csv`"
    if any(is_unreadable(name) for name in names):
        return "has `[` or `]` that do not enclose characters such as `[0-9]`"
    return ""


def owned_problems(plan: Plan) -> Iterator[Problem]:
    """A problem for each pattern of the plan that cannot be used."""
    for number, pattern in enumerate(plan.owns):
        if found := pattern_problem(pattern):
            yield Problem(code=CODE, field=f"owns[{number}]", message=f"`{pattern[:100]}` {found}")


def _parts(pattern: str) -> list[str]:
    return pattern.split("/") if not pattern.endswith("/") else [*pattern[:-1].split("/"), "**"]


def _fits(parts: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the parts fit all names, in time proportional to their product."""
    reached = [True, *[False] * len(names)]  # reached[n]: the parts so far fit the first n names
    for number, part in enumerate(parts):
        if part == "**":  # at the end at least one name: `out/**` is what is below `out`
            first = reached.index(True) if True in reached else len(reached)
            last = number == len(parts) - 1
            reached = [at > first or (at == first and not last) for at in range(len(reached))]
        else:
            text = re.compile(translated(part), re.DOTALL)
            fits = [text.fullmatch(name) is not None for name in names]
            reached = [False, *(before and own for before, own in zip(reached, fits, strict=False))]
    return reached[-1]
