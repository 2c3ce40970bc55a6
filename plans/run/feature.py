"""The seams of pure code: where a feature adds to what the core decides. The core names no feature.

A feature is a folder in `features/`; each of its sides is a module of the same name everywhere, and fills what it needs
of one protocol:

| side | module | protocol | asked by |
| --- | --- | --- | --- |
| pure | `rules` | `Rules`, here | the schedule of a run |
| pure | `language` | `Language`, plans/definition/language.py | validation, and filling in of arguments |
| views | `in_views` | `InViews`, plans/in_views.py | every view of a run |
| workflow | `in_workflow` | `InRun`, workflows/feature.py | PlanWorkflow, AgentWorkflow |
| worker | `in_worker` | `InWorker` and `Layer`, activities/feature.py | worker.py, each attempt |
| client | `commands`, `pages`, `check`, ... | functions, see features/__init__.py | the command line, the page |

What a feature keeps in a run is a part (`plans.model.parts`). A seam that no feature fills costs nothing: those that
fill it are collected once.

    RULES = Rules("notify", for_child=lambda run, step, plan: ChildPart(...))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.model import Plan, Step, ToolSpec
from plansurvive.plans.model.parts import Part
from plansurvive.plans.run import Decision, Result, Run
from plansurvive.plans.usage import Permission, Verdict


@dataclass(frozen=True)
class Rules:
    """The pure side of one feature. A seam that it does not fill is None."""

    name: str
    """Name of the feature, as in `features.FEATURES`."""
    for_start: Callable[[Plan, Mapping[str, ToolSpec]], Part | None] | None = None
    """What a plan is started with as a part of its options; it was checked with these tools of its client's machine.

    Example: `tool_servers` passes on which definitions of tools the plan was checked with.
    """
    for_next: Callable[[Run, bool], Part | None] | None = None
    """What a run that continues this ended one is started with, in place of this run's part of its options.

    True: it reruns steps that are done. Example: `cache` then takes no earlier results.
    """
    for_child: Callable[[Run, Step, Plan | None], Part | None] | None = None
    """What a child plan or an agent of this run is started with, as a part of its options.

    Asked when a step starts one, with the child's plan, which has its id; None: an agent. Example: `notify` passes on
    who is notified of the plan.
    """
    checked: Callable[[Run, datetime], None] | None = None
    """What follows from the facts of the plan's workers, which have just been recorded; the plan has not begun."""
    problem: Callable[[Run], str] | None = None
    """What is wrong with its part of a run that a client has handed in to be continued; empty if nothing is."""
    edited: Callable[[Run, Plan], None] | None = None
    """What follows for the run from an edit by a person; the plan is as it was before.

    Asked once an edit is applied. Example: `deadline` lets an edited `timeout` count instead of the option.
    """
    extend: Callable[[Run, Step, Call], Part | None] | None = None
    """What goes along with a call of a tool, as a part of it, for the feature's layer around the attempt.

    Asked when the call is made, with its arguments filled in. Example: `cache` orders that an earlier result be taken.
    """
    settled: Callable[[Run, Step, Return], Part | None] | None = None
    """What is kept of what a call has returned, as a part of the step's result; views show it under the feature's name.

    Asked once a call has ended well. Example: `cache` notes from which run the result is, or why the tool was called.
    """
    permit: Callable[[Run, bool], Permission | None] | None = None
    """Whether the run's next LLM request may be sent: one of its own (True), or of its agents and child plans (False).

    None: the feature has nothing to say about any of them. Example: `budget` compares what is spent with the limits.
    """
    failed: Callable[[Run, Step, Return, Result, datetime], bool] | None = None
    """What follows for the run from a failed call and what it left. True: a person decides about it once more.

    `Return` has the parts that the attempt left (`ToolContext.left`). Example: with `tool_servers`, nothing was called,
    because the tool is not the one that was decided about.
    """
    may_decide: Callable[[Run, Step, Decision], Decision] | None = None
    """A decision as it would be recorded, with the number of further people who must approve (`missing`).

    Asked for each decision of a message that nothing else speaks against, not for one by timeout; raises Refused for
    one that counts for nothing. Changes nothing. Example: with `policy` a rule may want two people.
    """
    decided: Callable[[Run, Step, Decision], None] | None = None
    """What is kept of a decision that has been recorded, or that others must join before it is.

    Example: `policy` collects the approvals of all who must approve.
    """
    caught_up: Callable[[Run, str, datetime, RuleSet], None] | None = None
    """What a step's child did after its last report is taken over into the record of an ended run that is continued.

    Asked for each step with an open account, of a copy of that run; the records of children are in `Run.agents`.
    Example: `agents` adds the files that an agent wrote, and what it spent.
    """


class RuleSet:
    """The pure sides of the features that a run asks, each at the seams that it fills, in the order given."""

    def __init__(self, rules: Sequence[Rules] = ()) -> None:
        self._for_start = [each.for_start for each in rules if each.for_start]
        self._for_next = [each.for_next for each in rules if each.for_next]
        self._for_child = [each.for_child for each in rules if each.for_child]
        self._checked = [each.checked for each in rules if each.checked]
        self._problem = [(each.name, each.problem) for each in rules if each.problem]
        self._edited = [each.edited for each in rules if each.edited]
        self._extend = [each.extend for each in rules if each.extend]
        self._permit = [each.permit for each in rules if each.permit]
        self._settled = [each.settled for each in rules if each.settled]
        self._failed = [each.failed for each in rules if each.failed]
        self._may_decide = [each.may_decide for each in rules if each.may_decide]
        self._decided = [each.decided for each in rules if each.decided]
        self._caught_up = [each.caught_up for each in rules if each.caught_up]

    def parts_for_start(self, plan: Plan, tools: Mapping[str, ToolSpec]) -> dict[str, Any]:
        """The parts of the options that a plan is started with."""
        return _by_feature(seam(plan, tools) for seam in self._for_start)

    def parts_for_next(self, run: Run, *, rerun: bool = False) -> dict[str, Any]:
        """The parts of the options that a run which continues this one is started with."""
        return {**run.options.parts, **_by_feature(seam(run, rerun) for seam in self._for_next)}

    def parts_for_child(self, run: Run, step: Step, plan: Plan | None) -> dict[str, Any]:
        """The parts of the options that a child plan or, without a plan, an agent of the run is started with."""
        return _by_feature(seam(run, step, plan) for seam in self._for_child)

    def checked(self, run: Run, now: datetime) -> None:
        """See `Rules.checked`."""
        for seam in self._checked:
            seam(run, now)

    def problems(self, run: Run) -> Iterator[str]:
        """See `Rules.problem`, each with the name of its part."""
        for name, seam in self._problem:
            try:
                problem = seam(run)
            except ValidationError as error:
                problem = error.errors(include_url=False)[0]["msg"][:300]
            if problem:
                yield f"{name}: {problem}"

    def edited(self, run: Run, before: Plan) -> None:
        """See `Rules.edited`."""
        for seam in self._edited:
            seam(run, before)

    def extended(self, run: Run, step: Step, call: Call) -> Call:
        """The call with what features add to it."""
        for seam in self._extend:
            if (part := seam(run, step, call)) is not None:
                call.parts[part.feature] = part
        return call

    def settled(self, run: Run, step: Step, returned: Return, result: Result) -> None:
        """Note in a result what features keep of what its call has returned."""
        for seam in self._settled:
            if (part := seam(run, step, returned)) is not None:
                result.parts[part.feature] = part

    def permission(self, run: Run, *, own: bool) -> Permission:
        """See `Rules.permit`: what the strictest of them says."""
        said = [permission for seam in self._permit if (permission := seam(run, own)) is not None]
        return max(said, key=lambda each: _STRICTNESS.index(each.verdict), default=Permission())

    def limits_children(self, run: Run) -> bool:
        """Whether one of them says when agents and child plans may send requests."""
        return any(seam(run, False) is not None for seam in self._permit)

    def failed(self, run: Run, step: Step, left: Return, failure: Result, now: datetime) -> bool:
        """See `Rules.failed`. All are asked, whatever the first one says."""
        answers = [seam(run, step, left, failure, now) for seam in self._failed]
        return any(answers)

    def may_decide(self, run: Run, step: Step, decision: Decision) -> Decision:
        """See `Rules.may_decide`: each is given what the one before has made of it."""
        for seam in self._may_decide:
            decision = seam(run, step, decision)
        return decision

    def decided(self, run: Run, step: Step, decision: Decision) -> None:
        """See `Rules.decided`."""
        for seam in self._decided:
            seam(run, step, decision)

    def caught_up(self, run: Run, step_id: str, now: datetime) -> None:
        """See `Rules.caught_up`."""
        for seam in self._caught_up:
            seam(run, step_id, now, self)


_STRICTNESS: Sequence[Verdict] = ("ok", "warn", "wait", "ask", "stop")


def _by_feature(parts: Iterable[Part | None]) -> dict[str, Any]:
    return {part.feature: part for part in parts if part is not None}


NO_RULES = RuleSet()
"""The core alone."""
