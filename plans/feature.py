"""The seams of pure code: where a feature adds to what the core decides. The core names no feature.

A feature is a folder in `features/`; each of its sides is a module of the same name everywhere, and fills what it needs
of one protocol:

| side | module | protocol | asked by |
| --- | --- | --- | --- |
| pure | `rules` | `Rules`, here | the schedule of a run |
| workflow | `in_workflow` | `InRun`, workflows/feature.py | PlanWorkflow, AgentWorkflow |
| worker | `in_worker` | `InWorker` and `Layer`, activities/feature.py | worker.py, each attempt |
| client | `commands`, `pages`, `check`, ... | functions, see features/__init__.py | the command line, the page |

What a feature keeps in a run is a part (`plans.parts`). A seam that no feature fills costs nothing: those that fill it
are collected once.

    RULES = Rules("notify", for_child=lambda run: ChildPart(...))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.parts import Part
from plansurvive.plans.run import Result, Run


@dataclass(frozen=True)
class Rules:
    """The pure side of one feature. A seam that it does not fill is None."""

    name: str
    """Name of the feature, as in `features.FEATURES`."""
    for_child: Callable[[Run], Part | None] | None = None
    """What a child plan or an agent of this run is started with, as a part of its options.

    Asked when a step starts one. Example: `notify` passes on who is notified of the plan.
    """
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


class RuleSet:
    """The pure sides of the features that a run asks, each at the seams that it fills, in the order given."""

    def __init__(self, rules: Sequence[Rules] = ()) -> None:
        self._for_child = [each.for_child for each in rules if each.for_child]
        self._edited = [each.edited for each in rules if each.edited]
        self._extend = [each.extend for each in rules if each.extend]
        self._settled = [each.settled for each in rules if each.settled]

    def parts_for_child(self, run: Run) -> dict[str, Any]:
        """The parts of the options that a child plan or an agent of the run is started with."""
        parts = [part for seam in self._for_child if (part := seam(run)) is not None]
        return {part.feature: part for part in parts}

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


NO_RULES = RuleSet()
"""The core alone."""
