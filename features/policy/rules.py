"""What a plan tells the policy of its worker about a call, and what follows from what the policy says.

The workflow reads no rule. It learns from an attempt that the policy asks, and from then on nothing but a person lets
the step start: no waiver, no remembered approval, no time limit.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import ValidationError

from plansurvive.features.policy.model import Decided, JudgedCall, Origin, Ruling
from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.model import Budget, Plan, Step
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Result, Run
from plansurvive.plans.run.feature import Rules
from plansurvive.plans.run.step_call import carries

ASKS = "APPROVAL_REQUIRED"


def origin_of(run: Run, step: Step) -> Literal["", "person", "llm", "agent"]:
    """Who chose a step's call; empty if it is not known: nobody says who has read the plan."""
    above = run.options.part(Origin).origin if Origin.feature in run.options.parts else ""
    if run.literal or above == "agent":
        return "agent"
    if run.request or above or run.steps[step.id].mended or any(each.by == "llm" for each in run.revisions):
        return "llm"
    return "person" if run.options.waivers else ""


def ruling_of(parted: Parted) -> Ruling | None:
    """What the policy said of an attempt; None if nothing, or anything else than our workers say."""
    if Ruling.feature not in parted.parts:
        return None
    try:
        return parted.part(Ruling)
    except ValidationError:  # of an activity that was completed by hand
        return None


def _for_child(run: Run, step: Step, plan: Plan | None) -> Origin | None:  # noqa: ARG001
    if not any(spec.judged for spec in run.facts.tools.values()):
        return None
    origin = origin_of(run, step)
    return Origin(origin=origin) if origin in ("llm", "agent") else None


def _extend(run: Run, step: Step, call: Call) -> JudgedCall | None:
    spec = run.facts.tools[step.tool]
    if not spec.judged and step.id not in run.unwaived:
        return None
    decision = run.decisions.get(step.id)
    is_persons = decision is not None and decision.approved and not decision.remembered and decision.source != "timeout"
    return JudgedCall(
        asks=spec.judged and not call.approved and spec.asks_by_default(call.args, carries(run, step)),
        names=[name for name in (run.plan.title, run.plan.id) if name],
        starter=run.options.by,
        origin=origin_of(run, step),
        spent=_is_spent(run),
        decided=[Decided(by=decision.by, time=decision.time)] if decision is not None and is_persons else [],
    )


def _settled(run: Run, step: Step, returned: Return) -> Ruling | None:
    ruling = ruling_of(returned)
    _count(run, step, ruling)
    return ruling


def _failed(run: Run, step: Step, left: Return, failure: Result, now: datetime) -> bool:  # noqa: ARG001
    """From now on only a person lets the step start. True: what was decided is no person's decision of this call."""
    ruling = ruling_of(left)
    _count(run, step, ruling)
    if ruling is None or ruling.decide != "ask" or failure.code != ASKS:
        return False
    run.unwaived[step.id] = ruling.reason[:500]
    return step.id in run.decisions


def _count(run: Run, step: Step, ruling: Ruling | None) -> None:
    """What the judges of rules were asked for a step is spent by its plan, as other requests are."""
    for each in ruling.judged if ruling is not None else ():
        run.llm_seconds += each.seconds
        if each.usage.calls:
            run.ledger = run.ledger.plus(each.usage, model=each.model, step_id=step.id, seconds=each.seconds)


def _is_spent(run: Run) -> bool:
    """Whether the plan's own budget has no room for another request; nobody is asked to extend it for a judge."""
    budget, spent = run.plan.budget or Budget(), run.ledger.total
    limits = ((budget.calls, spent.calls), (budget.tokens, spent.total_tokens), (budget.seconds, run.llm_seconds))
    return any(limit is not None and used >= limit for limit, used in limits)


RULES = Rules("policy", for_child=_for_child, extend=_extend, settled=_settled, failed=_failed)
