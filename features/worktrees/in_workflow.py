"""Merges in the runs of plans: one that is in conflict asks a person, and is made again with what they choose.

The merge is the step's call, before and after: the approval stands, as what it is about has not changed. What was
chosen is in the step's part, and so survives what a plan survives. A step with a `catch` for the conflict does not ask.
"""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow

from plansurvive.features.worktrees.model import MERGE
from plansurvive.features.worktrees.rules import choose, conflict_of
from plansurvive.plans.execution.asking import note_question, use_answer
from plansurvive.plans.flow.progress import handler_for
from plansurvive.plans.log import LogKind
from plansurvive.plans.step_state import Outcome, Status
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun
from plansurvive.workflows.in_steps import InSteps


class Merges(InSteps):
    """The merges of one run that ask about conflicts."""

    def __init__(self, execution: Execution) -> None:
        self._schedule, self._run = execution.schedule, execution.run
        self._asking = dict[str, None]()

    def takes(self, step_id: str, outcome: Outcome) -> bool:
        """Whether a merge has failed with a conflict that a person is asked about. If so, asks."""
        if outcome.status is not Status.FAILED:
            return False
        run, step = self._run, self._schedule.step(step_id)
        if step.tool != MERGE or not self._schedule.may_start(step_id):
            return False
        found = conflict_of(run, step_id)
        if not found.question or handler_for(step, outcome.result) is not None:
            return False
        now, state = workflow.now(), run.steps[step_id]
        self._schedule.ask(step_id, now, awaiting="answer")
        state.waits[state.changes[-1].seq] = "answer"
        note_question(run, step_id, found.question)
        state.keep(found.model_copy(update={"question": {}}))
        run.note(LogKind.ASKS, outcome.result.error or "", now, step_id)
        self._asking[step_id] = None
        return True

    def turn(self) -> None:
        """Make the merges again whose question has been answered."""
        for step_id in list(self._asking):
            state = self._run.steps.get(step_id)
            if state is None or state.awaiting != "answer":
                del self._asking[step_id]
            elif state.answer is not None and not state.answer.used:
                del self._asking[step_id]
                choose(self._run, step_id, use_answer(self._run, step_id))
                self._schedule.answered(step_id)

    def resume(self) -> None:
        """After continue-as-new: see which of them ask."""
        waiting = [name for name in self._schedule.awaiting if self._run.steps[name].awaiting == "answer"]
        self._asking = {name: None for name in waiting if self._schedule.step(name).tool == MERGE}


class Conflicts(InRun):
    """The conflicts of one run of a plan. Those of an agent's calls are failures, which it sees."""

    feature = "worktrees"
    of_agents = False

    def in_steps(self) -> Sequence[InSteps]:
        """Merges that ask."""
        return (Merges(self.execution),)


IN_RUN, WORKFLOWS = Conflicts, ()
