"""Finds steps of a plan that may change one file at the same time, or read it while another changes it. Pure.

Two steps race on a file if one of them writes or deletes it, the other uses it, and neither depends on the other,
directly or through other steps. Counted are the paths of file tools and those that the text of a command or a program
says it writes, as far as they are literal: what a reference leads to is not known, nor what a command reads. Steps on
different task queues have different files; two steps that both have a condition may exclude each other. None of these
are reported.

The ancestors of a step are the bits of one number, for the steps that share files only: 10,000 steps that all write one
file take a second, and an ordinary plan as long as reading it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Literal, NamedTuple

from plansurvive.plans.definition.checks.nested_steps import flattened
from plansurvive.plans.expressions.references import find
from plansurvive.plans.files.python_writes import written_by_python
from plansurvive.plans.model import Problem, Step

CODE = "FILE_RACE"
MAX_RACES = 50
"""Files reported at most."""
MAX_PARTS = 100
"""Directories above a path that are looked at."""

Use = Literal["reads", "writes", "deletes", "creates"]
_TOOLS: dict[str, Use] = {
    "read_file": "reads",
    "read_json": "reads",
    "write_file": "writes",
    "edit_file": "writes",
    "delete_file": "deletes",
    "create_directory": "creates",
}
_MAKES_FOLDERS = re.compile(r"\b(?:mkdir|makedirs)\b")
"""Directories that several steps make are what `mkdir -p` is for. As `test`, it writes nothing for the analysis."""

ShellWrites = Callable[[str], Sequence[str]]
"""Returns the paths that a shell command writes."""


class _Access(NamedTuple):
    """One use of a path by a step."""

    step: Step
    path: str
    """Normalised, after the name of the task queue."""
    use: Use

    @property
    def changes(self) -> bool:
        """Whether the path is another one afterwards; a directory that exists may be created again."""
        return self.use in ("writes", "deletes")


def races(steps: Sequence[Step], written_by_shell: ShellWrites) -> list[Problem]:
    """A warning for each file that steps race on, in step order; none for a plan with a cycle."""
    flat = flattened(steps)
    steps = [each.step for each in flat]
    accesses = list(_accesses(steps, written_by_shell))
    repeated = _in_loops(accesses, {each.step.id: each.loop for each in flat if each.loop})
    contended = _contended(accesses)
    if not contended:
        return repeated[:MAX_RACES]
    place = {step.id: number for number, step in enumerate(steps)}
    needs = {each.step.id: each.needs for each in flat}
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError:
        return []
    above = _Ancestors(needs, order, {each.step.id for group in contended.values() for each in group})
    found = repeated
    for path, group in contended.items():
        if pair := above.unordered(path, group):
            found.append(_problem(path, *sorted(pair, key=lambda each: place[each.step.id])))
    return sorted(found, key=lambda problem: place.get(problem.step_id or "", 0))[:MAX_RACES]


def _in_loops(accesses: Sequence[_Access], loops: Mapping[str, str]) -> list[Problem]:
    """Files that the items of a loop change at the same time."""
    found: dict[str, Problem] = {}
    for each in accesses:
        loop = loops.get(each.step.id)
        if loop is not None and each.changes:
            name = each.path.partition("\0")[2]
            text = (
                f"each item of the loop '{loop}' {each.use} '{name}', at the same time; put the item or its key into"
                " the path, or set forEach.maxParallel to 1"
            )
            problem = Problem(code=CODE, step_id=each.step.id, field="args", message=text, severity="warning")
            found.setdefault(f"{loop} {each.path}", problem)
    return list(found.values())


def _accesses(steps: Iterable[Step], written_by_shell: ShellWrites) -> Iterator[_Access]:
    known: dict[tuple[str, str], list[str]] = {}
    for step in steps:
        path = step.args.get("path")
        if step.tool in _TOOLS and isinstance(path, str):
            literal = path.removeprefix("$") if path.startswith("$$") else path
            paths, use = [] if find(path) else [literal], _TOOLS[step.tool]
        else:
            paths, use = _of_code(step, written_by_shell, known), "writes"
        for each in paths:
            yield _Access(step, f"{step.queue or ''}\0{posixpath.normpath(each)}", use)


def _of_code(step: Step, written_by_shell: ShellWrites, known: dict[tuple[str, str], list[str]]) -> list[str]:
    """Paths that the step's command or program writes by its own words; equal texts are analysed once."""
    text = step.args.get({"run_command": "command", "run_python": "code"}.get(step.tool, ""))
    folder = step.args.get("cwd") or "."
    if not isinstance(text, str) or not isinstance(folder, str) or find(folder):
        return []
    if (step.tool, text) not in known:
        plain = _MAKES_FOLDERS.sub("test", text)
        if step.tool == "run_command":
            found = list(written_by_shell(plain))
        else:
            program = written_by_python(plain)
            found = [*program.paths, *(path for command in program.commands for path in written_by_shell(command))]
        known[step.tool, text] = [path for path in dict.fromkeys(found) if "{{" not in path and "$" not in path]
    start = folder if step.tool == "run_command" else "."
    return [posixpath.join(start, path) for path in known[step.tool, text]]


def _contended(accesses: Sequence[_Access]) -> dict[str, list[_Access]]:
    """The uses of each path that one step changes and another uses, or something below it."""
    changed = {each.path for each in accesses if each.changes}
    groups: dict[str, dict[tuple[str, str], _Access]] = {}
    for each in accesses:
        for path in _with_parents(each.path):
            if path in changed:
                own = groups.setdefault(path, {})
                known = own.get((each.step.id, each.path))
                own[each.step.id, each.path] = known if known and known.changes else each
    several = {path: list(group.values()) for path, group in groups.items() if len(group) > 1}
    return {path: group for path, group in several.items() if len({each.step.id for each in group}) > 1}


def _with_parents(path: str) -> Iterator[str]:
    yield path
    for _ in range(MAX_PARTS):
        path, slash, _ = path.rpartition("/")
        if not slash or path.endswith("\0"):
            return
        yield path


class _Ancestors:
    """Which of the steps that share files come before a step, as the bits of a number."""

    def __init__(self, needs: Mapping[str, Sequence[str]], order: Sequence[str], sharing: set[str]) -> None:
        self._bit: dict[str, int] = {}
        self._above: dict[str, int] = {}
        last_use = {name: at for at, step_id in enumerate(order) for name in needs[step_id]}
        ending: dict[int, list[str]] = {}
        for name, at in last_use.items():
            ending.setdefault(at, []).append(name)
        reached: dict[str, int] = {}
        for at, step_id in enumerate(order):
            above = 0
            for name in needs[step_id]:
                above |= reached[name]
            if step_id in sharing:
                self._above[step_id] = above
                self._bit[step_id] = len(self._bit)
                above |= 1 << self._bit[step_id]
            reached[step_id] = above
            for name in ending.get(at, ()):
                del reached[name]  # nothing needs it any more: what is kept is as wide as the plan, not as long

    def unordered(self, path: str, group: Sequence[_Access]) -> tuple[_Access, _Access] | None:
        """Two uses, of which one changes the path itself, whose steps may run at the same time; None if there are none.

        The steps are taken in an order in which each comes after those that it needs.
        """
        users, changers = _Masks(), _Masks()
        for each in sorted(group, key=lambda each: self._bit[each.step.id]):
            changes = each.changes and each.path == path
            own = 1 << self._bit[each.step.id]
            before = (users if changes else changers).besides(each.step)
            if others := before & ~self._above[each.step.id] & ~own:
                return self._one_of(others, group, path, is_changer=not changes), each
            users.add(each.step, own)
            if changes:
                changers.add(each.step, own)
        return None

    def _one_of(self, steps: int, group: Sequence[_Access], path: str, *, is_changer: bool) -> _Access:
        """The first use by one of these steps; `is_changer`: the first that changes the path itself."""
        return next(
            each
            for each in group
            if steps >> self._bit[each.step.id] & 1 and (not is_changer or (each.changes and each.path == path))
        )


class _Masks:
    """The steps seen so far, and those of them that have no condition."""

    def __init__(self) -> None:
        self._all = self._unconditional = 0

    def add(self, step: Step, bit: int) -> None:
        """Add a step."""
        self._all |= bit
        self._unconditional |= 0 if step.when else bit

    def besides(self, step: Step) -> int:
        """Those that may run in the same plan as this one."""
        return self._unconditional if step.when else self._all


def _problem(path: str, first: _Access, second: _Access) -> Problem:
    name = path.partition("\0")[2]
    one, other = first.step.id, second.step.id
    verbs = [_verb(each, path) for each in (first, second)]
    text = (
        f"steps '{one}' and '{other}' may run at the same time, and both use '{name}': '{one}' {verbs[0]}, '{other}'"
        f" {verbs[1]}; if the order matters, add '{one}' to dependsOn of '{other}', or vice versa"
    )
    return Problem(code=CODE, step_id=other, field="dependsOn", message=text, severity="warning")


def _verb(each: _Access, path: str) -> str:
    return f"{each.use} it" if each.path == path else f"{each.use} '{each.path.partition(chr(0))[2]}' in it"


def paths_used(step: Step, written_by_shell: ShellWrites) -> list[tuple[str, Use]]:
    """The paths that one step uses by its own words, each after the name of its task queue and a NUL, and how."""
    return [(each.path, each.use) for each in _accesses([step], written_by_shell)]
