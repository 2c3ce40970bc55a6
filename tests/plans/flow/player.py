"""Plays a run of the pure core to its end: what `workflows.execution` does with Temporal, with a function as tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Self

from plansurvive.plans.execution import approvals, closing
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.next_action import Ask, Call, Fail, Open, Skip, Sleep, next_action
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.flow.progress import Further, Settle, handler_for
from plansurvive.plans.flow.values import Composer
from plansurvive.plans.model import DEFAULT_PARALLEL, Step
from plansurvive.plans.run import PlanStatus, Result, Run, Status, run_of, text_of
from plansurvive.plans.run.step_call import digest_of
from plansurvive.plans.step_state import Outcome
from tests.plans.building import NOW
from tests.plans.building import run_of as start

Tool = Callable[[str, dict[str, Any]], Any]


class Failure(Exception):
    """A call fails with this code."""


class Player:
    """One run, and what was called in it, in order."""

    def __init__(self, run: Run, tool: Tool = lambda _, args: args.get("text"), *, reload: bool = False) -> None:
        self.run, self.tool, self.reload = run, tool, reload
        self.schedule, self.now = Schedule(run), NOW
        self.called: list[str] = []
        self.most = 0
        if run.started is None:
            self.schedule.begin(self.now)

    def play(self, limit: int = 100_000) -> Self:
        """Go on until nothing can happen without a person; end the run if nothing can happen at all."""
        for _ in range(limit):
            if self.reload:
                self.run = run_of(text_of(self.run))
                self.schedule = Schedule(self.run)
            if not (self._proceed() or self._begin() or self._finish() or self._close()):
                break
        else:
            return self  # there is more to do
        if self.schedule.idle:
            self.schedule.end(self.now)
        return self

    def decide(self, step_id: str, approved: bool = True, **fields: Any) -> None:
        """What a person decides."""
        approvals.decide(self.run, Decide(step_id=step_id, approved=approved, **fields), self.now, "signal")
        self.schedule.answered(step_id)

    def value(self, step_id: str) -> Any:
        """The value of a step."""
        return Composer(self.run.outline, self.run.opened, self.run.steps).value(step_id)

    def statuses(self, *names: str) -> list[str]:
        """Statuses of steps."""
        return [self.run.steps[name].status.value for name in names]

    def _proceed(self) -> bool:
        name = self.schedule.next_ended()
        if name is None:
            return False
        match self.schedule.next_move(name, self.now):
            case Settle(outcome):
                self.schedule.settle(name, outcome, self.now)
            case Further(opened, delay):
                self.now += timedelta(seconds=delay)
                self.schedule.open(name, opened, self.now)
        return True

    def _begin(self) -> bool:
        if self.run.status is not PlanStatus.RUNNING:
            return False
        limit = self.run.plan.max_parallel or DEFAULT_PARALLEL
        if self.schedule.running >= limit:
            return False
        if not self.schedule.ready:
            return self.schedule.open_next(limit, self.now)
        name = next(iter(self.schedule.ready))
        match next_action(self.schedule, name):
            case Skip(reason, opens, code):
                result = Result(ok=False, error=reason, code=code, timestamp=self.now)
                self.schedule.settle(name, Outcome(Status.SKIPPED, result, opens), self.now)
            case Fail(code, message):
                self._end(name, Result(ok=False, error=message, code=code, timestamp=self.now))
            case Ask(call):
                self.schedule.ask(name, self.now)
                approvals.ask(self.run, name, call.args, digest_of(call))
            case Open(opened):
                self.schedule.start(name, self.now)
                self.schedule.open(name, opened, self.now)
            case Sleep():
                self.schedule.start(name, self.now)
            case Call():
                self.schedule.start(name, self.now)
        self.most = max(self.most, self.schedule.running)
        return True

    def _finish(self) -> bool:
        running = [name for name in self.schedule.moving(10**6) if self._runs(name)]
        if not running:
            return False
        name = running[0]
        args = next_action_args(self.schedule, name) or self.schedule.step(name).args
        self.called.append(name)
        self.run.steps[name].calls += 1
        try:
            value = self.tool(name, args)
        except Failure as failure:
            self._end(name, Result(ok=False, error="failed", code=str(failure) or "BROKEN", timestamp=self.now))
        else:
            json.dumps(value)
            self._end(name, Result(ok=True, value=value, timestamp=self.now))
        return True

    def _close(self) -> bool:
        """Begin what closes the plan next, once its steps have ended."""
        return self.schedule.idle and self.run.ended is None and closing.advance(self.schedule, self.now)

    def _runs(self, name: str) -> bool:
        return self.run.steps[name].status is Status.RUNNING and not self.schedule.is_container(name)

    def _end(self, name: str, result: Result) -> None:
        if result.ok:
            self.schedule.settle(name, Outcome(Status.COMPLETED, result), self.now)
            return
        handler = handler_for(self.schedule.step(name), result)
        if handler is None or self.run.stopped:
            self.schedule.settle(name, Outcome(Status.FAILED, result), self.now)
        else:
            self.schedule.catch(name, Opened(body=result, handler=handler), self.now)


def next_action_args(schedule: Schedule, name: str) -> dict[str, Any]:
    """The arguments of a running step, values filled in."""
    match next_action(schedule, name):
        case Call(filled, _):
            return filled.args
    return {}


def plan(*steps: dict[str, Any], **fields: Any) -> Run:
    """A run of a plan of these steps, as a plan file has them."""
    return start(*[Step.model_validate(step) for step in steps], **fields)


def note(name: str, text: Any = None, *needs: str) -> dict[str, Any]:
    """A step whose value is its argument."""
    return {"id": name, "tool": "note", "args": {"text": text}, "dependsOn": list(needs)}


def failing(code: str, *names: str) -> Tool:
    """A tool that fails in some steps."""

    def tool(name: str, args: dict[str, Any]) -> Any:
        if name in names:
            raise Failure(code)
        return args.get("text")

    return tool


def broken(*names: str) -> Tool:
    """A tool that fails in some steps, with the code BROKEN."""
    return failing("BROKEN", *names)


def code_of(played: Player, name: str) -> str | None:
    """The code of a step's result."""
    result = played.run.steps[name].result
    return None if result is None else result.code
