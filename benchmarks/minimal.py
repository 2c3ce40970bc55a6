"""The baseline: a minimal hand-written workflow for a graph of steps.

The fastest loop we know: activities with done-callbacks, one `wait_condition`, counters of open dependencies, a limit
on activities in flight, continue-as-new when the server suggests it. It calls the same activities as a plan. It has no
validation, approvals, pauses, log, views or summaries.
"""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel, Field

    from plansurvive.plans.activity_io import Call, Return
    from plansurvive.plans.large_value import LargeValue
    from plansurvive.plans.model import Retry

IN_FLIGHT = 64
TIMEOUT = 3_600.0
"""Seconds one attempt may take; no measured step takes as long."""


class GraphStep(BaseModel):
    """One step."""

    id: str
    tool: str
    args: dict[str, Any]
    needs: list[str] = Field(default_factory=list)


class Graph(BaseModel):
    """The steps, and the results of those that are done."""

    workspace: str
    steps: list[GraphStep]
    done: dict[str, Return] = Field(default_factory=dict)
    waves: bool = False
    """Run in waves, as some engines do: start nothing until every running step has finished."""


def call(step: GraphStep, graph: Graph, done: dict[str, Return]) -> Call:
    """Input of the step's activity: references resolved, except those to large values, which the activity loads."""
    args: dict[str, Any] = {}
    large: dict[str, LargeValue] = {}
    for key, value in step.args.items():
        args[key] = value
        if isinstance(value, str) and value.startswith("$"):
            returned = done[value[1:]]
            if returned.large is None:
                args[key] = returned.value
            else:
                large[value[1:]] = returned.large
    return Call(
        args=args,
        plan_id="minimal",
        step_id=step.id,
        key=step.id,
        workspace=graph.workspace,
        timeout=TIMEOUT,
        retry=Retry(),
        deferred=[[key] for key, value in args.items() if isinstance(value, str) and value[1:] in large],
        large=large,
    )


def start(step: GraphStep, filled: Call) -> workflow.ActivityHandle[Return]:
    """Start the step's activity."""
    return workflow.start_activity(
        step.tool,
        filled,
        activity_id=step.id,
        result_type=Return,
        start_to_close_timeout=timedelta(seconds=TIMEOUT + 30),
        heartbeat_timeout=timedelta(seconds=5),
    )


@workflow.defn(name="MinimalWorkflow")
class MinimalWorkflow:
    """Runs a graph; its result is the number of steps."""

    @workflow.run
    async def run(self, graph: Graph) -> int:
        """Start ready steps, wait for finished ones, update the counters, until all are done."""
        self._graph, self._done = graph, graph.done
        self._finished: deque[tuple[str, Any]] = deque()
        self._in_flight = 0
        self._count()
        while self._in_flight or self._ready:
            full = workflow.info().is_continue_as_new_suggested()
            if full and not self._in_flight:
                workflow.continue_as_new(graph)
            if not full and not (graph.waves and self._in_flight):
                self._start_ready()
            await workflow.wait_condition(lambda: bool(self._finished))
            while self._finished:
                self._settle(*self._finished.popleft())
        return len(self._done)

    def _count(self) -> None:
        self._dependents: dict[str, list[GraphStep]] = {step.id: [] for step in self._graph.steps}
        self._open: dict[str, int] = {}
        for step in self._graph.steps:
            for name in step.needs:
                self._dependents[name].append(step)
            self._open[step.id] = sum(name not in self._done for name in step.needs)
        steps = self._graph.steps
        self._ready = deque(step for step in steps if step.id not in self._done and not self._open[step.id])

    def _start_ready(self) -> None:
        while self._ready and self._in_flight < IN_FLIGHT:
            self._start(self._ready.popleft())

    def _start(self, step: GraphStep) -> None:
        self._in_flight += 1
        handle = start(step, call(step, self._graph, self._done))
        handle.add_done_callback(lambda done: self._finished.append((step.id, done)))

    def _settle(self, step_id: str, handle: Any) -> None:
        self._in_flight -= 1
        self._done[step_id] = handle.result()
        for dependent in self._dependents[step_id]:
            self._open[dependent.id] -= 1
            if not self._open[dependent.id]:
                self._ready.append(dependent)


@workflow.defn(name="MinimalApprovals")
class MinimalApprovals:
    """Starts each step of a graph when a signal names it; its result is the value of each step."""

    def __init__(self) -> None:
        self._approved: deque[str] = deque()

    @workflow.signal
    def approve(self, message: dict[str, str]) -> None:
        """Let a step start."""
        self._approved.append(message["stepId"])

    @workflow.run
    async def run(self, graph: Graph) -> dict[str, Any]:
        """Run each step when it is approved, one at a time, in order of approval."""
        steps = {step.id: step for step in graph.steps}
        values: dict[str, Any] = {}
        while len(values) < len(steps):
            await workflow.wait_condition(lambda: bool(self._approved))
            step = steps[self._approved.popleft()]
            values[step.id] = (await start(step, call(step, graph, {}))).value
        return values


class Loop(BaseModel):
    """The same tool for each number, and the values so far in item order."""

    workspace: str
    tool: str
    name: str
    items: list[Any]
    values: dict[int, Any] = Field(default_factory=dict)
    waves: bool = False
    """Start the next batch when all of the last one have finished."""


@workflow.defn(name="MinimalLoop")
class MinimalLoop:
    """Runs a loop in a sliding window, or in batches; its result is the number of values."""

    @workflow.run
    async def run(self, loop: Loop) -> int:
        """Start items until the window is full, wait for finished ones, until all are done."""
        self._loop, self._in_flight = loop, 0
        self._finished: deque[tuple[int, Any]] = deque()
        left = deque(index for index in range(len(loop.items)) if index not in loop.values)
        while left or self._in_flight:
            full = workflow.info().is_continue_as_new_suggested()
            if full and not self._in_flight:
                workflow.continue_as_new(loop)
            while left and self._in_flight < IN_FLIGHT and not full:
                self._start(left.popleft())
            await workflow.wait_condition(lambda: len(self._finished) >= (self._in_flight if loop.waves else 1))
            while self._finished:
                index, handle = self._finished.popleft()
                loop.values[index] = handle.result().value
                self._in_flight -= 1
        return len(loop.values)

    def _start(self, index: int) -> None:
        loop = self._loop
        step = GraphStep(id=f"i{index}", tool=loop.tool, args={loop.name: loop.items[index]})
        handle = start(step, call(step, Graph(workspace=loop.workspace, steps=[]), {}))
        handle.add_done_callback(lambda done: self._finished.append((index, done)))
        self._in_flight += 1
