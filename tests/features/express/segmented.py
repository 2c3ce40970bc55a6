"""A player whose calls are made in segments: on copies of its run, as a worker has them."""

from __future__ import annotations

from typing import Any, NamedTuple

from plansurvive.features.express.carrying import carried
from plansurvive.features.express.model import ExpressFact
from plansurvive.features.express.reach import reach
from plansurvive.features.express.segment import Bounds, Segment
from plansurvive.plans.activity_io import Return
from plansurvive.plans.execution.next_action import Call, next_action
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.run import PlanStatus, Run, run_of
from plansurvive.plans.run.step_call import call_of, digest_of
from tests.plans.flow.player import Failure, Player, Tool


class Ended(NamedTuple):
    """How a call in a segment ended."""

    digest: str
    value: Any
    failure: Failure | None


class Segmented(Player):
    """Takes the outcome of a call from a segment, if one has made it."""

    def __init__(
        self, run: Run, tool: Tool = lambda _, args: args.get("text"), *, kind: type[Segment] = Segment, **more: Any
    ) -> None:
        quick = {name: spec.model_copy(update={"quick": not spec.durable}) for name, spec in run.facts.tools.items()}
        run.facts = run.facts.model_copy(update={"tools": quick, "parts": {"express": ExpressFact(on=True)}})
        self.bounds, self.kind = Bounds(), kind
        self.ended: dict[tuple[str, int], Ended] = {}
        self.barred: dict[str, str] = {}
        self.segments: list[int] = []
        """Calls of each."""
        self.sizes: list[int] = []
        """Characters of what each is given."""
        self.really, self.alone = tool, list[str]()
        super().__init__(run, self._outcome, **more)

    def _begin(self) -> bool:
        in_work = self.ended or self.run.status is not PlanStatus.RUNNING
        if not in_work and any(name not in self.barred for name in self.schedule.ready):
            self._segment()
        return super()._begin()

    def _segment(self) -> None:
        within = reach(self.schedule, self.schedule.ready, self.bounds.steps)
        if not within:
            return
        goes = carried(self.schedule, within, self.bounds.steps)
        self.sizes.append(len(goes.run) + len(goes.unseen))
        copy = Schedule(run_of(goes.run))
        limit = (self.run.plan.max_parallel or 64) - self.schedule.running
        segment = self.kind(copy, self.now, self.bounds, limit, frozenset(self.barred), partial=goes.partial)
        while made := segment.begin(self.now):
            for call in made:
                ended = self._made(call.step.id, call.filled.args, call.digest)
                self.ended[call.step.id, call.number] = ended
                if ended.failure is None:
                    segment.completed(call.step.id, Return(value=ended.value, duration=0), 100, self.now)
                else:
                    segment.failed(call.step.id)
        assert not segment.in_flight
        self.segments.append(segment.made)
        self.barred |= segment.left
        if not segment.made:  # what is ready begins in the workflow
            self.barred |= dict.fromkeys(self.schedule.ready, "")

    def _made(self, name: str, args: dict[str, Any], digest: str) -> Ended:
        try:
            return Ended(digest, self.really(name, args), None)
        except Failure as failure:
            return Ended(digest, None, failure)

    def _outcome(self, name: str, args: dict[str, Any]) -> Any:
        """How the call ended that the workflow would make now, with these arguments."""
        step = self.schedule.step(name)
        action = next_action(self.schedule, name)
        found = self.ended.pop((name, self.run.steps[name].calls), None)
        if found is None:
            self.alone.append(name)
            return self.really(name, args)
        assert isinstance(action, Call), f"the workflow would not call {name}, but {action}"
        assert found.digest == digest_of(call_of(self.run, step, action.filled, action.values)), f"another {name}"
        if found.failure is not None:
            raise found.failure
        return found.value
