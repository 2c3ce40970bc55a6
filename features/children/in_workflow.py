"""The children of one plan and the plan above it, in a run of its workflow; of an agent, its place alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plansurvive.features.children.child_run import place_problems
from plansurvive.features.children.messages import PlaceNews, PlaceReport
from plansurvive.features.children.place import SharedPlace
from plansurvive.features.children.reporter import Reporter
from plansurvive.features.children.results import KEY, result_of
from plansurvive.features.children.steps import ChildSteps
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.execution.messages import AGENT_BYTES, AgentProgress, BudgetAnswer
from plansurvive.plans.model import Problem
from plansurvive.plans.run import Run
from plansurvive.workflows import parent
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun, signal
from plansurvive.workflows.in_steps import InSteps


class Guest(InRun):
    """What works at the place of the plan above: an agent, or a child plan."""

    feature = "children"

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._place = SharedPlace.of(execution)

    @classmethod
    def early(cls, execution: Execution, message: PlaceNews) -> None:
        """Leave the host, or take over where the files are: the plan above waits for nobody to be checked."""
        SharedPlace.of(execution).told(message)

    @signal(
        "place", PlaceNews, "Sent by the plan of an agent or a child plan: leave the host, or where the files are.",
        early=True, between=True,
    )  # fmt: skip
    def place(self, message: PlaceNews) -> None:
        """Sent by the plan of an agent or a child plan that works at its host (docs/scaling.md#a-workspace-each): leave
        the place with this token, and say so; or where the files are now; or why they could not be moved.
        """
        self._place.told(message)

    async def resting(self) -> None:
        """Say what must be said before."""
        await self._place.said()

    async def cut_short(self) -> None:
        """Tell the plan above what the last steps have left."""
        await self._place.cut_short()


class Children(Guest):
    """The children of a plan, and its reports to the plan above."""

    of_agents = Guest

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._reporter = Reporter()
        self._steps = ChildSteps(execution.schedule, self._place, lambda *about: execution.in_steps.exceeds(*about))

    def in_steps(self) -> Sequence[InSteps]:
        """Agents and plans."""
        return (self._steps,)

    @signal(
        "place_report", PlaceReport,
        "Sent by children: a host that takes none of their steps, or that they have left it.", between=True,
    )  # fmt: skip
    def place_report(self, message: PlaceReport) -> None:
        """Sent by an agent or child plan at its plan's host: no worker there takes its calls; it has left, and this is
        its newest checkpoint. Counts only from what works on a step now.
        """
        self._place.reported(message)

    @signal(
        "agent_progress", AgentProgress, "Sent by children: progress of the agent or plan that works on a step.",
        max_bytes=AGENT_BYTES, between=True,
    )  # fmt: skip
    def agent_progress(self, message: AgentProgress) -> None:
        """Sent by the agent of a step: its task list, progress and notes, and since its last report its finished tool
        calls and their files; by a child plan: `child {status, counts, pending, more}`, what its parent's views show of
        it. `spent` is all that it has spent on LLM requests, so a report that arrives twice counts once. `request` asks
        whether the plan's budget allows the request of this number. What follows `notes` counts only from the agent or
        child plan that works on the step now (`UNKNOWN_AGENT`).
        """
        self._steps.received(message)

    @signal(
        "budget_answer", BudgetAnswer, "Sent by the parent of a child plan: whether its next LLM request is granted.",
        between=True,
    )  # fmt: skip
    def budget_answer(self, message: BudgetAnswer) -> None:
        """Sent by the plan to an agent or a child plan that asked: the LLM request of this number may be sent, or why
        it may not; `number` 0: the plan has a budget now, ask from now on.
        """
        parent.answered(self.execution.run, message)

    @classmethod
    def unfit(cls, run: Run, facts: Facts) -> Sequence[Problem]:
        """A child plan works below what the plan above was granted."""
        return place_problems(run, facts)

    def shown(self) -> None:
        """Report to the plan above."""
        self._reporter.report(self.execution.schedule)

    def returned(self, summary: dict[str, Any]) -> dict[str, Any] | None:
        """Of a child plan, besides its summary, what the plan above takes over."""
        run = self.execution.run
        return {**summary, KEY: result_of(run)} if run.parent is not None else None

    async def ended(self) -> None:
        """Wait until the last report is on its way."""
        await self._reporter.sent()


IN_RUN, WORKFLOWS = Children, ()
