"""Reads recorded runs of scientific workflows: WfFormat 1.5, as in github.com/wfcommons/WfInstances.

    graph = read(Path("montage.json"))       # every task with its parents and its run time in seconds
    steps = graph.steps(seconds=3.0)         # the steps of a plan, run times scaled

A file that is not of this format is refused with `Unreadable`, which says what is wrong with it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from benchmarks.graphs import Steps

VERSION = "1.5"
MAX_BYTES = 512_000_000
"""Maximum size of a file; the largest of the collection has 30 MB."""


class Unreadable(Exception):
    """A file is not an instance of WfFormat 1.5; the text says why."""


class _Task(BaseModel):
    id: Annotated[str, Field(min_length=1)]
    parents: list[str] = Field(default_factory=list)


class _Ran(BaseModel):
    id: str
    runtime: float = Field(alias="runtimeInSeconds", ge=0, allow_inf_nan=False)


class _Specification(BaseModel):
    tasks: list[_Task] = Field(min_length=1)


class _Execution(BaseModel):
    tasks: list[_Ran]


class _Workflow(BaseModel):
    specification: _Specification
    execution: _Execution


class _File(BaseModel):
    schema_version: str = Field(alias="schemaVersion")
    workflow: _Workflow


@dataclass(frozen=True)
class Task:
    """One task: the tasks that come first, and how long it ran, in seconds."""

    id: str
    parents: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class TaskGraph:
    """The tasks of one instance, each after its parents."""

    tasks: tuple[Task, ...]

    @cached_property
    def depth(self) -> int:
        """Number of tasks on the longest path."""
        depths: dict[str, int] = {}
        for task in self.tasks:
            depths[task.id] = 1 + max((depths[parent] for parent in task.parents), default=0)
        return max(depths.values())

    def least(self, slots: int) -> float:
        """The shortest possible makespan in seconds: the critical path, or all work over the slots if longer."""
        ends: dict[str, float] = {}
        for task in self.tasks:
            ends[task.id] = task.seconds + max((ends[parent] for parent in task.parents), default=0.0)
        return max(*ends.values(), sum(task.seconds for task in self.tasks) / slots, 0.0)

    def steps(self, seconds: float, slots: int, **args: Any) -> Steps:
        """The steps of a plan, one per task, scaled so that `least` is `seconds`; `args` go to every step."""
        least = self.least(slots)
        scale = seconds / least if least else 0.0
        names = _step_ids(task.id for task in self.tasks)
        return [
            {
                "id": names[task.id],
                "tool": "task",
                "args": {"seconds": round(task.seconds * scale, 6), **args},
                "dependsOn": [names[parent] for parent in task.parents],
            }
            for task in self.tasks
        ]


def read(file: Path) -> TaskGraph:
    """The graph of an instance. Raises Unreadable."""
    try:
        if file.stat().st_size > MAX_BYTES:
            raise Unreadable(f"larger than {MAX_BYTES // 1_000_000} MB")
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Unreadable(f"not readable as JSON: {error}") from error
    if not isinstance(data, dict) or "schemaVersion" not in data or "workflow" not in data:
        raise Unreadable("not WfFormat: an instance is an object with `schemaVersion` and `workflow`")
    if data["schemaVersion"] != VERSION:
        raise Unreadable(f"WfFormat {data['schemaVersion']!r}; only {VERSION} is read")
    try:
        return _graph(_File.model_validate(data).workflow)
    except ValidationError as error:
        raise Unreadable(_first(error)) from error


def _graph(workflow: _Workflow) -> TaskGraph:
    tasks = {task.id: task for task in workflow.specification.tasks}
    ran = {task.id: task.runtime for task in workflow.execution.tasks}
    counts = Counter(task.id for task in workflow.specification.tasks)
    _refuse("is there more than once", [name for name, count in counts.items() if count > 1])
    _refuse("has no run time in `workflow.execution.tasks`", [name for name in tasks if name not in ran])
    unknown = [f"{task.id} (parent {name})" for task in tasks.values() for name in task.parents if name not in tasks]
    _refuse("has a parent that does not exist", unknown)
    try:
        order = list(TopologicalSorter({task.id: task.parents for task in tasks.values()}).static_order())
    except CycleError as error:
        raise Unreadable(f"its tasks wait for each other: {' -> '.join(error.args[1][:10])}") from error
    return TaskGraph(tuple(Task(name, tuple(dict.fromkeys(tasks[name].parents)), ran[name]) for name in order))


def _refuse(what: str, names: list[str]) -> None:
    if names:
        more = f", and {len(names) - 1} more" if len(names) > 1 else ""
        raise Unreadable(f"task {names[0]} {what}{more}")


def _first(error: ValidationError) -> str:
    found = error.errors()
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"`{'.'.join(map(str, found[0]['loc']))}`: {found[0]['msg']}{more}"


def _step_ids(names: Iterator[str]) -> dict[str, str]:
    """An id for each task: its own where a plan may have it, otherwise similar to it."""
    taken: set[str] = set()
    ids: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:110].lstrip("-") or "task"
        chosen = plain if plain not in taken else f"{plain}_{len(ids)}"
        while chosen in taken:
            chosen += "_"
        taken.add(chosen)
        ids[name] = chosen
    return ids
