"""The runs of schedules whose histories are kept."""

from __future__ import annotations

from plansurvive.apps.schedules.control import delete_schedule, trigger_schedule
from plansurvive.apps.schedules.create import Rules, create_schedule
from plansurvive.apps.schedules.spec import Timing
from plansurvive.plans.run import Options
from tests.kit.driving import Plans, Started, work

WRITE = {"id": "w", "tool": "write_file", "args": {"path": "report.md", "content": "new"}}
REFUSE = {"id": "bad", "tool": "refuse", "args": {"code": "CONFLICT"}, "dependsOn": ["w"]}


async def scheduled(plans: Plans) -> Started:
    """A run of a schedule: continued as new, it replaces a file that it owns, and fails as it does not complete."""
    (plans.workspace / "report.md").write_text("old")
    before = [work("a"), work("b", "a"), work("c", "b")]
    plan = {"steps": [*before, {**WRITE, "dependsOn": ["c"]}, REFUSE], "owns": ["report.md"], "title": "Nightly"}
    options = Options(workspace=str(plans.workspace), history_limit=12)
    rules = Rules(pause_on_failure=True)
    timing = Timing(cron=["0 0 1 1 *"])
    await create_schedule(plans.client, "nightly", plan, timing, rules=rules, options=options, queue=plans.queue)
    triggered = await trigger_schedule(plans.client, "nightly")
    started = Started(plans.client, f"plan-{triggered.plan_id}")
    await started.ended()
    await delete_schedule(plans.client, "nightly")
    return started


SCHEDULED = {"scheduled": scheduled}
