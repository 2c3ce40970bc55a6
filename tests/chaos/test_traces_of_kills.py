"""The trace of a plan whose worker is killed while a step that fails three times runs: one tree, with every attempt."""

from __future__ import annotations

import pytest

from tests.chaos.conftest import Chaos
from tests.kit.collector import collector, lines
from tests.kit.driving import WAITS, work
from tests.kit.waiting import until


@pytest.mark.slow
async def test_the_trace_of_a_plan_with_a_kill_and_three_retries_is_one_tree(chaos: Chaos) -> None:
    with collector() as sink:
        chaos.worker.environ |= {"PLANS_OTEL": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url}
        await chaos.worker.up()
        retry = {"attempts": 4, "delay": 0.05}
        steps = [
            work("first"),
            work("often", "first", args={"fails": 4, **WAITS}, retry=retry),
            work("last", "often"),
        ]
        plan = await chaos.plans.start(steps)
        await until(lambda: ["start", "often", "1"] in chaos.plans.ledger, "the step runs")
        await until(lambda: sink.named("execute_tool work"), "what ended a second before is exported")
        chaos.worker.kill()
        chaos.plans.go()
        await chaos.worker.up()
        view = await plan.ended()
        await until(sink.has_plan, "the plan's span arrives")
        assert await chaos.worker.stop() == 0
    tree = lines(sink.spans)
    assert view["status"] == "completed"
    assert sorted(tree) == sorted([
        "plan",
        "  step work first",
        "    execute_tool work first 1",
        "  step work often",
        "    execute_tool work often 1 !WORKER_LOST",
        "    execute_tool work often 2 !BUSY",
        "    execute_tool work often 3 !BUSY",
        "    execute_tool work often 4 !BUSY",
        "    execute_tool work often 5",
        "  step work last",
        "    execute_tool work last 1",
    ])  # fmt: skip


@pytest.mark.slow
async def test_a_worker_that_is_killed_before_it_exported_anything_leaves_a_tree_without_gaps(chaos: Chaos) -> None:
    """Lost are the spans of attempts that had ended: no other span hangs below those. The rest is told again."""
    with collector() as sink:
        chaos.worker.environ |= {"PLANS_OTEL": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url}
        chaos.worker.environ["OTEL_BSP_SCHEDULE_DELAY"] = "3600000"  # only the end of a plan exports
        await chaos.worker.up()
        retry = {"attempts": 3, "delay": 0.05}
        steps = [work("first"), work("often", "first", args={"fails": 2, **WAITS}, retry=retry)]
        plan = await chaos.plans.start(steps)
        await until(lambda: ["start", "often", "1"] in chaos.plans.ledger, "the step runs")
        chaos.worker.kill()
        assert not sink.spans
        chaos.plans.go()
        await chaos.worker.up()
        assert (await plan.ended())["status"] == "completed"
        await until(sink.has_plan, "the plan's span arrives")
        assert await chaos.worker.stop() == 0
    known = {span.span_id for span in sink.spans}
    assert [span.name for span in sink.spans if span.parent not in known] == ["plan"]
    assert sorted(lines(sink.spans)) == sorted([
        "plan",
        "  step work first",
        "  step work often",
        "    execute_tool work often 1 !WORKER_LOST",
        "    execute_tool work often 2 !BUSY",
        "    execute_tool work often 3",
    ])  # fmt: skip
