"""The update `edit`: changes a plan while it is open.

The validator refuses an edit that cannot be applied, so that it leaves no trace in history; an accepted edit is applied
completely. An edit of an outdated version is refused with what has changed since.
While the plan is a draft, it cannot be validated, and the update waits. It may arrive in the same workflow task as
the answer that completes the draft, and the SDK delivers the update first.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow

from plansurvive.features.editing.messages import MAX_BYTES, EditPlan
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.editing.apply_edits import Revised, revise
from plansurvive.plans.editing.edit_limits import newly_bound
from plansurvive.plans.errors import InvalidPlan, PlanError, UnknownQueue
from plansurvive.plans.execution.revision import answer_to
from plansurvive.plans.run import PlanStatus, Run
from plansurvive.workflows import worker_facts
from plansurvive.workflows.feature import InRun, update


class Editing(InRun):
    """The edits of one run of a plan. An agent's plan is its record: nobody edits it."""

    feature = "editing"
    of_agents = False

    _checked: tuple[EditPlan, int, Revised] | None = None
    """The edit that was found valid last, the Run's `seq` then, and its result: `edit` follows in the same task."""

    @update(
        "edit", EditPlan,
        'Edit the plan, all edits or none: {"expectVersion": 1, "edits": [{"op": "set", "stepId": "s1", '
        '"path": "args.x", "value": 1}], "by": "..."}; ops: set, add, remove, move, skip, unskip',
        signed=True, validator="may_edit", max_bytes=MAX_BYTES,
    )  # fmt: skip
    async def edit(self, message: EditPlan) -> dict[str, Any]:
        """Edits the plan; returns the new version and the diff. Operations: `set`, `add`, `remove`, `move`, `skip`,
        `unskip`; all or none. `stepId`, `after` and `before` may name a step inside a block (`resize.thumb`: all items
        that have not got to it) or an instance (`resize[cat.png].thumb`: that one alone): docs/plan-files.md.
        """
        execution, run = self.execution, self.execution.run
        places: bool | None = None
        if run.status is PlanStatus.DRAFT:
            await workflow.wait_condition(lambda: run.status is not PlanStatus.DRAFT)
            places = False  # its check was local, and has just ended
        revised, facts = await self._revised(message)
        before = run.plan
        execution.revise(revised, places if facts is None else facts.places)
        execution.schedule.rules.edited(run, before)
        return answer_to(run, revised)

    def may_edit(self, message: EditPlan) -> None:
        """Refuse edits that cannot be applied, unless the workers know better: then `edit` asks them."""
        run = self.execution.run
        if run.status is PlanStatus.DRAFT:
            return
        try:
            self._checked = message, run.seq, revise(run, message, workflow.now())
        except PlanError as error:
            if not _may_be_valid(run, error):
                raise

    async def _revised(self, message: EditPlan) -> tuple[Revised, Facts | None]:
        """The plan with the edits applied. Tools and queues new to the plan are looked up on their workers first.

        Also what the plan's own workers answered, if they were asked.
        """
        run, facts = self.execution.run, None
        judged: set[str] = set()
        while True:
            try:
                revised = self._take_checked(message) or revise(run, message, workflow.now())
            except UnknownQueue as error:
                await worker_facts.learn_queue(run, error.queue)
                continue
            except InvalidPlan as error:
                if not _may_be_valid(run, error):
                    raise
                facts = await worker_facts.require_tools(run)
                continue
            unjudged = [queue for queue in newly_bound(run.plan, revised.plan) if queue not in judged]
            if not unjudged:
                return revised, facts
            for queue in unjudged:
                await worker_facts.judge(run, revised.plan, queue)
            judged.update(unjudged)  # and once more: the run may have changed during the awaits

    def _take_checked(self, message: EditPlan) -> Revised | None:
        """What the validator found, once, if nothing has happened since. A replay has no validators."""
        checked, self._checked = self._checked, None
        now, seq = workflow.now(), self.execution.run.seq
        if checked is None or checked[:2] != (message, seq) or checked[2].revision.time != now:
            return None
        return checked[2]


def _may_be_valid(run: Run, error: PlanError) -> bool:
    """Whether the edits may be valid after all, once the workers' tools and queues are known."""
    if isinstance(error, UnknownQueue):
        return True
    if run.facts.all_tools or not isinstance(error, InvalidPlan):
        return False
    return all(problem.code == "UNKNOWN_TOOL" for problem in error.problems)


IN_RUN, WORKFLOWS = Editing, ()
