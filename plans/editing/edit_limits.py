"""What keeps a plan from being edited: another version, its end, queues whose workers nobody has asked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from plansurvive.plans.definition.scopes import outermost, queues, walk, walk_step
from plansurvive.plans.errors import Refused, UnknownQueue
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import ENDED, PlanStatus, Run


def check_version(run: Run, expected: int | None) -> None:
    """Raises Refused STALE_VERSION, listing the changes since, if the plan is not at the expected version."""
    if expected is None or expected == run.plan.version:
        return
    shown = ""
    for each in [each for each in run.revisions if each.version > expected][-5:]:
        by = f" by {each.by}" if each.by else ""
        shown += f"\n- version {each.version}{by}: {'; '.join(each.diff[:5])}"[:1_000]
    raise Refused(
        f"the plan is at version {run.plan.version}, not {expected}; review the changes and try again{shown}",
        "STALE_VERSION",
    )


def check_open(run: Run) -> None:
    """Raises Refused if the plan cannot be edited: it is being drafted, or no further step will start."""
    if run.status in ENDED:
        raise Refused(f"the plan has ended ({run.status}); it cannot be edited", "PLAN_CLOSED")
    if run.status is PlanStatus.DRAFT:
        raise Refused("the plan is still being drafted; edit it once it is in review", "TOO_EARLY")
    if run.closing is not None:
        raise Refused("the plan is being closed; it cannot be edited", "PLAN_CLOSED")
    if run.stopped:
        raise Refused(f"no further step will start ({run.stopped}); the plan cannot be edited", "PLAN_CLOSED")


def newly_bound(old: Plan, new: Plan) -> list[str]:
    """The task queues of the new and changed steps that are bound to one."""
    before = {step.id: step for step in outermost(old)}
    return queues(step for step in outermost(new) if step != before.get(step.id))


def check_queues(run: Run, new: Plan, overrides: Mapping[str, Step]) -> None:
    """Raise UnknownQueue if a step is bound to a queue whose workers have not reported their tools and workspace."""
    known = {run.plan.queue, *queues(outermost(run.plan)), *run.facts.workspaces}
    inner = ((name, each) for name, step in overrides.items() for _, each in walk_step(step))
    for path, step in chain(walk(new), inner):
        if step.queue and step.queue not in known:
            raise UnknownQueue(path, step.queue)
