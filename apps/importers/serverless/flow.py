"""Follows the tasks of a Serverless Workflow: one after the other, with `then` and `switch` leading elsewhere.

A list of tasks with jumps becomes steps with blocks: each case of a switch has the tasks up to where the cases meet
again. Jumps backwards are loops, which are reported. Tasks that several cases share stand in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from plansurvive.apps.importers.common.expressions import Node, Op, Path, Unknown, roots_of
from plansurvive.apps.importers.common.names import Names
from plansurvive.apps.importers.common.plan_text import NOTE
from plansurvive.apps.importers.common.report import Location
from plansurvive.apps.importers.serverless.state import State

MAX_TASKS = 2_000
"""Most steps made of one document; cases that share tasks multiply them."""
MAX_NESTING = 12
LEAVE = ("exit", "end")

Tasks = list[tuple[str, dict[str, Any], Location]]
"""Name, definition and place of each task of a list."""


class Case(NamedTuple):
    """One way on from a task: under which condition, with which task first, and at which index; None: the end."""

    when: str
    target: int | None
    task: dict[str, Any] | None = None


@dataclass
class Made:
    """The steps made of a list of tasks, and the data after them."""

    state: State
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """The ids of the steps."""
        return [step["id"] for step in self.steps]


@dataclass
class Flow:
    """One import: ids given, tasks made, and the function that makes the steps of a task."""

    names: Names
    made_of: Callable[[str, dict[str, Any], State, Flow, Location], Made]
    functions: Mapping[str, Any]
    retries: Mapping[str, Any]
    left: int = MAX_TASKS
    depth: int = 0

    def sequence(self, tasks: Any, state: State, place: Location) -> Made:
        """The steps of a list of tasks, each after the one before."""
        if self.depth >= MAX_NESTING:
            state.report.loss(place, f"tasks nested deeper than {MAX_NESTING}", "move them to another plan")
            return Made(state)
        self.depth += 1
        found = self._from(0, None, listed(tasks, place), Made(state))
        self.depth -= 1
        return found

    def _from(self, start: int, until: int | None, tasks: Tasks, made: Made) -> Made:
        """The steps from one task to another, or to the end."""
        at: int | None = start
        while at is not None and at != until and at < len(tasks):
            name, task, place = tasks[at]
            self.left -= 1
            if self.left < 0:
                made.state.report.loss(place, f"more than {MAX_TASKS} tasks", "split the workflow")
                return made
            jumps = task.get("then") not in (None, "continue")
            if "switch" in task or ("if" in task and jumps):
                at = self._switch(at, until, tasks, made)
                continue
            self._add(made, self.made_of(name, task, made.state, self, place))
            at = _target(task.get("then"), at, tasks, made.state, place)
        return made

    def _add(self, made: Made, more: Made) -> None:
        if made.steps and more.steps:
            more.steps[0].setdefault("dependsOn", [made.steps[-1]["id"]])
        made.steps += more.steps
        made.state = more.state

    def _switch(self, at: int, until: int | None, tasks: Tasks, made: Made) -> int | None:
        """A switch, or a task with a condition that leads elsewhere; returns where its cases meet again."""
        name, task, place = tasks[at]
        cases = _cases(at, tasks, made.state) if "switch" in task else _alternatives(at, tasks, made.state)
        meeting = _meeting([_way(case.target, tasks) for case in cases])
        meeting = until if meeting is None else meeting
        ident = self.names.new(name)
        ends = [self._branch(case, name, meeting, tasks, made.state, place) for case in cases]
        steps = [self._case(case.when, end) for case, end in zip(cases, ends, strict=True)]
        self._add(made, Made(_joined(ident, made.state, ends), [{"id": ident, "switch": steps}]))
        return meeting

    def _branch(self, case: Case, name: str, until: int | None, tasks: Tasks, state: State, place: Location) -> Made:
        """The steps of one case: its own task, and those from its target to where the cases meet."""
        made = Made(state)
        if self.depth >= MAX_NESTING:
            state.report.loss(place, f"tasks nested deeper than {MAX_NESTING}", "move them to another plan")
            return made
        self.depth += 1
        if case.task is not None:
            self._add(made, self.made_of(name, case.task, state, self, place))
        if case.target is not None:
            self._from(case.target, until, tasks, made)
        self.depth -= 1
        return made

    def _case(self, when: str, inner: Made) -> dict[str, Any]:
        return ({"when": when} if when else {}) | {"steps": inner.steps or [self.nothing()]}

    def nothing(self) -> dict[str, Any]:
        """A step that does nothing: a block needs one."""
        return {"id": self.names.new("nothing"), "tool": "sleep", "args": {"seconds": 0}}


def listed(tasks: Any, place: Location) -> Tasks:
    """The tasks of a list of objects with one name each."""
    found: Tasks = []
    for number, each in enumerate(tasks if isinstance(tasks, list) else []):
        for name, task in each.items() if isinstance(each, dict) else ():
            if isinstance(task, dict):
                found.append((str(name), task, (*place, number, name)))
    return found


def within(block: str, node: Node, ids: list[str]) -> Node:
    """A value inside a block as it is outside; Unknown if it is not a part of the block's own value."""
    roots = set(roots_of(node))
    if not roots & set(ids):
        return node
    if isinstance(node, Path):
        return Path(block, (node.root, *node.parts))
    return Unknown(f"the output of {block}, which is made of several values")


def marked(step: dict[str, Any], state: State, before: int) -> dict[str, Any]:
    """The step with comments about what it lost since the report had `before` entries."""
    if any(key in step for key in ("steps", "switch")):
        return step
    entries = state.report.entries[before:]
    numbers = [str(number) for number, entry in enumerate(entries, before) if entry.kind == "loss"]
    return {NOTE: ",".join(numbers), **step} if numbers else step


def _joined(name: str, before: State, cases: list[Made]) -> State:
    """The data after a switch: that of the case that ran."""
    dots, contexts = [], []
    for case in cases:
        dots.append(within(name, case.state.dot, case.ids))
        contexts.append(within(name, case.state.context, case.ids))
    return replace(before, dot=_either(dots, name), context=_either(contexts, name))


def _either(nodes: list[Node], name: str) -> Node:
    if all(node == nodes[0] for node in nodes):
        return nodes[0]
    if all(isinstance(node, Path) and node.root == name for node in nodes):
        return Op("||", tuple(nodes))
    return Unknown(f"a value that depends on which case of {name} ran")


def _target(then: Any, at: int, tasks: Tasks, state: State, place: Location) -> int | None:
    """The index of the task that `then` leads to; None: the end."""
    if then in (None, "continue"):
        return at + 1
    if then in LEAVE:
        return None
    index = next((number for number, (name, _, _) in enumerate(tasks) if name == then), None)
    if index is None:
        state.report.loss((*place, "then"), f"it continues at {then}, and there is no such task", "set dependsOn")
        return at + 1
    if index <= at:
        state.report.loss((*place, "then"), f"it continues at {then}, which comes before it", "write it with repeat")
        return None
    return index


def _cases(at: int, tasks: Tasks, state: State) -> list[Case]:
    """The cases of a switch; the last has no condition, as a workflow continues if none holds."""
    _, task, place = tasks[at]
    found: list[Case] = []
    otherwise: int | None = at + 1
    for name, given, where in listed(task.get("switch"), (*place, "switch")):
        target = _target(given.get("then"), at, tasks, state, where)
        if given.get("when") is None:
            otherwise = target
            continue
        when = state.condition(given["when"], (*where, "when"))
        if when:
            found.append(Case(when, target))
        else:
            state.report.loss(where, f"the case {name}, whose condition was not imported", "add it to `switch`")
    return [*found, Case("", otherwise)]


def _alternatives(at: int, tasks: Tasks, state: State) -> list[Case]:
    """A task with a condition that leads elsewhere: it and what follows there, or the next task."""
    _, task, place = tasks[at]
    alone = {key: each for key, each in task.items() if key not in ("if", "then")}
    when = state.condition(task["if"], (*place, "if"))
    target = _target(task.get("then"), at, tasks, state, place)
    return [*([Case(when, target, alone)] if when else []), Case("", at + 1)]


def _way(start: int | None, tasks: Tasks) -> list[int]:
    """The tasks on the way from one on, as far as it is the same whatever happens."""
    found: list[int] = []
    at = start
    while at is not None and at < len(tasks):
        found.append(at)
        _, task, _ = tasks[at]
        then = task.get("then")
        if then in LEAVE and "if" not in task:
            break
        target = next((number for number, (name, _, _) in enumerate(tasks) if name == then), None)
        at = target if target is not None and target > at and "if" not in task else at + 1
        if "switch" in task:
            break
    return found


def _meeting(ways: list[list[int]]) -> int | None:
    """The first task that is on every way; None if there is none."""
    return next((at for at in ways[0] if all(at in way for way in ways)), None) if ways else None
