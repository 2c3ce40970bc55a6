"""Each alert rule of deploy/prometheus fires when what it is about happens to real workers, and no other one does.

The rules run in the time of `scaled_rules`; everything else is real: a server, two workers, an LLM over HTTP, and a
Prometheus that scrapes them. FIRES says which test provokes which rule.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from temporalio.service import RPCError

from plansurvive.plans.run import ENDED
from tests.alerts.conftest import Stand
from tests.chaos.conftest import WorkerProcess
from tests.deploy.test_alerts import rules
from tests.kit.driving import Started, statuses, work
from tests.kit.waiting import until
from tests.upgrades.fleet import AT, copy

pytestmark = pytest.mark.slow

FIRES = {
    "work goes wrong": {"PlansDecisionWaits", "PlansFailing", "PlansAttemptsFailing", "PlansLlmFailing"},
    "too much work": {"PlansStepsWait", "PlansWorkerFull"},
    "a worker dies": {"PlansWorkerDown", "PlansAttemptsLost"},
    "all workers die": {"PlansWorkerDown", "PlansAttemptsLost", "PlansNoWorker"},
    "a release breaks plans": {"PlansStuck"},
    "the server is away": {"PlansServerUnreachable"},
}
COMPLETED, ANSWERED = 'plans_ended_total{status="completed"}', 'plans_llm_requests_total{outcome="completed"}'
WATCHERS = 4
HEALTHY_SECONDS = 60
"""Half an hour in the time of the rules: longer than any window and what its rule waits for."""


def test_each_rule_is_provoked() -> None:
    assert set().union(*FIRES.values()) == {rule["alert"] for rule in rules()}


async def test_none_fires_while_plans_run_as_they_should(stand: Stand) -> None:
    """With what belongs to it: a call that fails once, a decision, a step denied, a busy minute, and many who look on.

    Queries come too late then: the SDK counts some of them as workflow tasks that failed.
    """

    async def seconds() -> float:
        (found,) = await stand.prometheus.value("max(time() - plans_worker_start_time_seconds)")
        return float(found["value"][1])

    async def counted() -> bool:
        sums = (f"sum({name})" for name in (COMPLETED, ANSWERED))
        found = [await stand.prometheus.value(each) for each in sums]
        return all(rows and float(rows[0]["value"][1]) > 1 for rows in found)

    rounds = 0
    while rounds < 2 or await seconds() < HEALTHY_SECONDS:
        agent = {"id": "agent", "tool": "agent", "args": {"objective": "Say done."}}
        flaky = work(f"flaky{rounds}", args={"fails": 1}, retry={"attempts": 2, "delay": 0.1})
        plan = await stand.plans.start(
            [flaky, agent, *(work(f"r{rounds}-{number}") for number in range(4)), work("gate", requiresApproval=True)]
        )
        denied = await stand.plans.start([work("gate", requiresApproval=True)])
        watchers = [asyncio.create_task(_look(plan)) for _ in range(WATCHERS)]
        for each, decide in ((plan, plan.approve), (denied, denied.deny)):
            await each.until_asked("gate")
            await decide("gate")
        assert set(statuses(await plan.ended()).values()) == {"completed"}
        assert (await denied.ended())["status"] == "partial"
        await asyncio.gather(*watchers)
        rounds += 1
    await until(counted, "the figures are there")
    for rule in await stand.prometheus.rules():
        assert (rule["health"], rule.get("lastError", "")) == ("ok", ""), rule["name"]
    assert await stand.prometheus.fired() == set()


async def _look(plan: Started) -> None:
    """Ask how a plan stands, again and again, until it has ended."""
    status = ""
    while status not in ENDED:
        with suppress(RPCError):  # nobody has the plan yet
            status = (await plan.view())["status"]


async def test_work_that_goes_wrong(stand: Stand) -> None:
    await stand.plans.start([work("gate", requiresApproval=True)])
    await stand.plans.start([work("busy", args={"fails": 1_000}, retry={"attempts": 100, "delay": 0.5, "factor": 1})])
    for number in range(6):
        objective = f"Task {number} is unheard."
        await stand.plans.start(
            [{"id": f"agent{turn}", "tool": "agent", "args": {"objective": objective}} for turn in range(2)]
        )
    broken = await stand.plans.run([work("broken", args={"fails": 1_000}, retry={"attempts": 1})])
    assert broken["status"] == "partial"
    await stand.until_fired(*FIRES["work goes wrong"])
    assert await stand.prometheus.fired() == FIRES["work goes wrong"]


async def test_more_work_than_the_workers_can_take(stand: Stand) -> None:
    await stand.plans.start([work(f"step{number}", seconds=4) for number in range(160)])
    await stand.until_fired(*FIRES["too much work"])
    assert await stand.prometheus.fired() == FIRES["too much work"]


async def test_one_worker_dies_while_it_runs_a_step_then_all_do_then_one_comes_back(stand: Stand) -> None:
    async def running() -> WorkerProcess | None:
        query = 'temporal_worker_task_slots_used{worker_type="ActivityWorker"} == 1'
        found = await stand.prometheus.value(query)
        busy = [each["metric"]["instance"] for each in found]
        return next((each for each in stand.workers if busy == [each.environ["PLANS_METRICS"]]), None)

    plan = await stand.plans.start([work("long", args={"until": "go.txt"})])
    dead: WorkerProcess = await until(running, "a worker runs the step")
    (other,) = [each for each in stand.workers if each is not dead]
    dead.kill()
    await until(lambda: ["start", "long", "2"] in stand.plans.ledger, "the other worker runs the step")
    stand.plans.go()
    assert (await plan.ended())["status"] == "completed"
    await stand.until_fired(*FIRES["a worker dies"])
    assert await stand.prometheus.fired() == FIRES["a worker dies"]
    other.kill()
    await stand.until_fired(*FIRES["all workers die"])
    assert await stand.prometheus.fired() == FIRES["all workers die"]
    await dead.up()
    await stand.until_silent("PlansNoWorker", "PlansAttemptsLost")


async def test_a_worker_that_comes_back_counts_what_was_lost_before_prometheus_sees_it(stand: Stand) -> None:
    worker, other = stand.workers
    assert await other.stop() == 0
    plan = await stand.plans.start([work("long", args={"until": "go.txt"})])
    await until(lambda: ["start", "long", "1"] in stand.plans.ledger, "the step runs")
    worker.kill()
    stand.plans.go()
    await worker.up()
    assert (await plan.ended())["status"] == "completed"
    await stand.until_fired("PlansAttemptsLost")


@pytest.mark.parametrize(
    "line", ["await workflow.sleep(1)", 'raise RuntimeError("broken")'], ids=["other history", "error"]
)
async def test_a_release_that_cannot_continue_plans(stand: Stand, tmp_path: Path, line: str) -> None:
    """Its workflow sleeps first, as no plan before did, and not behind a patch; or it fails. The older one ends it."""
    plan = await stand.plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    worker, other = stand.workers
    assert await other.stop() == 0
    assert await worker.stop() == 0
    await stand.until_fired("PlansWorkerDown", "PlansNoWorker")
    code = copy(tmp_path / "broken", 1)
    workflow = code / "workflows" / "plan.py"
    workflow.write_text(workflow.read_text().replace(AT, f"        {line}\n{AT}"))
    broken = WorkerProcess([sys.executable, str(code / "worker.py")], worker.environ, tmp_path / "broken.log")
    try:
        await broken.up()
        await plan.approve("gate")
        await stand.until_fired("PlansStuck")
    finally:
        broken.kill()
    assert await stand.prometheus.fired() == FIRES["a release breaks plans"] | {"PlansWorkerDown", "PlansNoWorker"}
    await worker.up()
    assert (await plan.ended())["status"] == "completed"
    await stand.until_silent("PlansStuck")


async def test_a_server_that_is_away_and_back(stand: Stand) -> None:
    stand.server.kill()
    await stand.until_fired(*FIRES["the server is away"])
    assert await stand.prometheus.fired() == FIRES["the server is away"]
    await stand.server.up()
    await stand.until_silent("PlansServerUnreachable")
