"""Matches the signals in a workflow's history with what the workflow says became of them (`plans.receipts`).

History has that at two places: in the argument of continue-as-new, and in the result of `record_end`, the local
activity with which a plan ends. It has nothing of the last run of an agent, or of a plan that was terminated.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import Any

from plansurvive.features import sides
from plansurvive.features.audit.entries import Act
from plansurvive.features.audit.outcomes import DECIDES, Sent, closed, outcomes, read
from plansurvive.plans.receipts import Receipts
from plansurvive.workflows.feature import messages_of

RECORDED = "record_end"
"""The local activity that records the end of a plan."""


@cache
def between_workflows() -> frozenset[str]:
    """The signals from one workflow of a plan to another one, which have no entries: see `Message.between`."""
    kinds = [side.IN_RUN for side in sides("in_workflow") if side.IN_RUN]
    return frozenset(each.name for each in messages_of(kinds) if each.between)


class Signals:
    """The signals of one run of a workflow after the other, without those between workflows."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        """Those of the run that is being read, in order. Whoever reads the history adds them."""
        self._recorded: Receipts | None = None
        self._decided = dict[str, Sent]()
        """By step, the last decision or answer that a run before this one accepted."""

    @property
    def are_told(self) -> bool:
        """Whether history has what became of those of the run that is being read."""
        return self._recorded is not None

    def decided(self, step_id: str) -> None:
        """An update has decided about a step: what becomes void later is that."""
        self._decided.pop(step_id, None)

    def of_next_run(self) -> None:
        """The next signals are of the run that continues this one as new."""
        self.sent, self._recorded = [], None

    def at_continue(self, argument: Any, time: datetime) -> list[Act]:
        """What became of the signals of a run, by the argument that it continued as new with."""
        return self._said(read(_carried(argument)), time)

    def at_record(self, result: Any, time: datetime) -> list[Act]:
        """The same, by the result of the local activity that records the end of a plan."""
        if self._recorded is not None or not isinstance(result, dict):
            return []
        self._recorded = read(result.get("receipts"))
        return self._said(self._recorded, time)

    def at_end(self, time: datetime) -> list[Act]:
        """What became of those that came after the record of the plan's end."""
        return closed(self._recorded, self.sent, time) if self._recorded is not None else []

    def _said(self, receipts: Receipts | None, time: datetime) -> list[Act]:
        if receipts is None:
            return []
        found = [self._of_run_before(each) for each in outcomes(receipts, self.sent, time)]
        ended = {each.entry: each.outcome for each in found}
        for each in self.sent:
            if each.action in DECIDES and ended.get(each.entry) == "accepted":
                self._decided[each.step_id] = each
        return found

    def _of_run_before(self, act: Act) -> Act:
        """What became void in this run of the workflow may have been decided in an earlier one."""
        if act.outcome != "void" or act.entry is not None or act.step_id not in self._decided:
            return act
        signal = self._decided.pop(act.step_id)
        return act.model_copy(update={"entry": signal.entry, "action": f"{signal.action} ended"})


def _carried(argument: Any) -> Any:
    """The receipts in the argument of continue-as-new: of a plan, whose Run may be a text, or of an agent."""
    if not isinstance(argument, dict):
        return None
    run, agent = argument.get("run"), argument.get("agent")
    if isinstance(agent, dict):
        run = agent.get("run")
    if isinstance(run, str):
        run = json.loads(run) if '"receipts":' in run else None
    return run.get("receipts") if isinstance(run, dict) else None
