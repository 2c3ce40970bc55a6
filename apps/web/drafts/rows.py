"""The steps of a plan as its review lists them: what each does, what is wrong with it, what can be done. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plansurvive.apps.web.drafts.reviewed import Reviewed
from plansurvive.plans.definition.checks.will_ask import Asking
from plansurvive.plans.definition.scopes import Body, bodies, path_in
from plansurvive.plans.editing.draft import has_begun
from plansurvive.plans.expressions.json_path import first_name
from plansurvive.plans.model import Step
from plansurvive.plans.model.step_fields import On, aliases
from plansurvive.plans.run import Run, Status
from plansurvive.plans.text.safe_text import exact
from plansurvive.plans.views.models.card import unusual_in
from plansurvive.plans.views.steps.written import heading

MAX_STEPS = 1_000
"""Steps that are listed, those inside others included; the others are counted."""
SHORT = 400
"""Characters of a value that are shown at once; the rest after a click."""
MOST = 200_000
"""Characters of a value that are shown at all."""
_SHOWN = frozenset(("tool", "args", "description", "dependsOn", "steps", "switch", "finally", "requiresApproval"))


@dataclass(frozen=True)
class Fact:
    """A field of a step and its value, with everything unusual spelt out."""

    name: str
    text: str
    left_out: int = 0
    """Characters that are not shown at all."""

    @property
    def is_long(self) -> bool:
        """Whether only its beginning is shown at first."""
        return len(self.text) > SHORT or self.text.count("\n") > 8


@dataclass(frozen=True)
class Row:
    """One step."""

    id: str
    number: str
    step: Step
    status: str
    args: list[Fact]
    facts: list[Fact]
    unusual: list[str]
    problems: list[str]
    asks: list[Asking]
    why_not: str
    """Why it cannot be edited; empty: it can."""
    is_skipped: bool = False
    may_move: bool = False
    up: str | None = None
    """The step behind which it stands once it moved up; empty: first; None: it is first already."""
    down: str | None = None
    """The step behind which it stands once it moved down; None: it is last already."""
    inside: list[Group] = field(default_factory=list)

    @property
    def needs(self) -> list[str]:
        """The steps it waits for, as written."""
        return self.step.depends_on


@dataclass(frozen=True)
class Group:
    """Steps inside a step, under a heading such as `On any failure`."""

    heading: str
    rows: list[Row]


@dataclass(frozen=True)
class Listed:
    """The rows of a plan, and the number of steps without a row."""

    rows: list[Row]
    left_out: int


def rows_of(found: Reviewed) -> Listed:
    """The rows of a plan, in order."""
    maker = _Maker(found)
    steps = found.run.plan.steps
    ids = [step.id for step in steps]
    rows = [maker.row(step, step.id, str(number), ids) for number, step in enumerate(steps[:MAX_STEPS], 1)]
    return Listed(rows, max(0, len(steps) - MAX_STEPS))


class _Maker:
    def __init__(self, found: Reviewed) -> None:
        self._found = found
        self._problems = found.problems_by_step
        self._asks: dict[str, list[Asking]] = {}
        self._left = MAX_STEPS
        for each in found.asking:
            self._asks.setdefault(each.step_id, []).append(each)

    def row(self, step: Step, path: str, number: str, ids: Sequence[str] = ()) -> Row:
        run = self._found.run
        self._left -= 1
        why_not = why_not_edited(self._found, path)
        at = ids.index(path) if path in ids else -1
        state = run.steps.get(path)
        args = run.args_of(step) if state is not None and "." not in path else step.args
        return Row(
            id=path,
            number=number,
            step=step,
            status=str(state.status) if state is not None else "",
            args=[_fact(name, value) for name, value in args.items()],
            facts=list(_facts(step)),
            unusual=unusual_in([*args.items(), ("description", step.description)]),
            problems=[_problem(each.field, each.message) for each in self._problems.get(path, [])],
            asks=self._asks.get(path, []),
            why_not=why_not,
            is_skipped=state is not None and state.status is Status.SKIPPED,
            may_move=at >= 0 and not why_not,
            up=(ids[at - 2] if at > 1 else "") if at > 0 else None,
            down=ids[at + 1] if 0 <= at < len(ids) - 1 else None,
            inside=[group for body in bodies(step) for group in self._groups(step, body, path, number)],
        )

    def _groups(self, step: Step, body: Body, path: str, number: str) -> Iterator[Group]:
        inner = list(enumerate(body.steps, 1))[: max(0, self._left)]
        mark = f"{body.part} " if body.part else ""
        rows = [self.row(each, f"{path_in(body, path)}{each.id}", f"{number}.{mark}{at}") for at, each in inner]
        yield Group(heading(step, body), rows)


def why_not_edited(found: Reviewed, path: str) -> str:
    """Why a step cannot be edited, as far as the page knows; the plan decides."""
    run = found.run
    if not found.is_open:
        return f"the plan is {run.status}"
    top = first_name(path).split("#")[0]
    known = path if path in run.steps else top
    if known in run.steps and has_begun(run, known) and not (known == top != path and _is_running(run, top)):
        return f"'{known}' is {run.steps[known].status}: only what has not started can be changed"
    return ""


def _is_running(run: Run, name: str) -> bool:
    return run.steps[name].status is Status.RUNNING


def _problem(name: str | None, message: str) -> str:
    return f"{name}: {message}" if name else message


def _facts(step: Step) -> Iterator[Fact]:
    """The other fields that are set, by their names in a plan file."""
    data = step.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    for name in aliases(step.__class__, On.EDIT):
        rest = _without_steps(data[name]) if name in data and name not in _SHOWN else None
        if rest not in (None, {}, []):
            yield _fact(name, rest)


def _without_steps(value: Any) -> Any:
    """A field without the steps inside it, which are listed by themselves."""
    if isinstance(value, list):
        return [rest for each in value if (rest := _without_steps(each)) not in ({}, [])]
    return {name: each for name, each in value.items() if name != "steps"} if isinstance(value, Mapping) else value


def _fact(name: str, value: Any) -> Fact:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=_indent(value))
    return Fact(exact(name), exact(text[:MOST]), max(0, len(text) - MOST))


def _indent(value: Any) -> int | None:
    return 2 if isinstance(value, dict | list) and len(json.dumps(value)) > 80 else None
