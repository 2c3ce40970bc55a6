"""Plans that are made to stall a worker: each ends by itself, and another plan on the same worker ends meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.expressions.references import MAX_IN_CODE
from tests.kit.driving import Plans, Started, statuses, step, work
from tests.nightly import only_nightly

pytestmark = pytest.mark.modes("plain")
DOUBLED = " |[@,@]" * 27
INPUTS = {"x": {"type": "array", "default": [1, 2]}}


def command(step_id: str, text: str) -> dict[str, Any]:
    """A step that is never run: nobody approves it."""
    return {"id": step_id, "tool": "run_command", "args": {"command": text}, "dependsOn": ["a"], "when": "`false`"}


async def beside(plans: Plans, hostile: Started) -> dict[str, Any]:
    """The end of a hostile plan, after a bystander on the same worker has ended."""
    view = await plans.run([work("one"), work("two", "one")])
    assert view["status"] == "completed"
    return await hostile.ended()


@pytest.mark.parametrize("tail", ["|length(to_string(@))", "", " == inputs.x"])
async def test_a_condition_that_doubles_a_value_fails_its_step_alone(plans: Plans, tail: str) -> None:
    steps = [work("a"), work("bomb", "a", when=f"inputs.x{DOUBLED}{tail}"), work("c", "a")]
    view = await beside(plans, await plans.start(steps, inputs=INPUTS))
    assert statuses(view)["a"] == statuses(view)["c"] == "completed"
    code = step(view, "bomb")["result"].get("code")
    assert code == "EXPRESSION_TOO_COSTLY" or (tail == " == inputs.x" and statuses(view)["bomb"] == "skipped")


async def test_references_that_double_a_value_fail_their_step_alone(plans: Plans) -> None:
    whole, text = f"$inputs.x{DOUBLED}", "{{inputs.x" + DOUBLED + "|length(to_string(@))}}"
    steps = [work("whole", args={"value": whole}), work("text", args={"value": text}), work("c")]
    many = ("{{inputs.x" + " |[@,@]" * 12 + "|length(to_string(@))}} ") * 200
    steps.append(work("many", args={"value": many}))
    view = await beside(plans, await plans.start(steps, inputs=INPUTS))
    codes = {name: step(view, name)["result"].get("code") for name in ("whole", "text", "many", "c")}
    assert codes == dict.fromkeys(("whole", "text", "many"), "EXPRESSION_TOO_COSTLY") | {"c": None}


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, only_nightly(100)])
async def test_many_costly_conditions_at_once_do_not_stall_a_workflow_task(plans: Plans, count: int) -> None:
    steps = [work(f"s{n}", when=f"inputs.x{DOUBLED}|length(to_string(@)) > `{n}`") for n in range(count)]
    started = await plans.start([*steps, work("last")], inputs=INPUTS)
    view = await beside(plans, started)
    assert statuses(view)["last"] == "completed"
    assert {step(view, f"s{n}")["result"]["code"] for n in range(count)} == {"EXPRESSION_TOO_COSTLY"}
    assert await rests(started) >= count // 5


async def test_a_plan_without_costly_steps_does_not_rest(plans: Plans) -> None:
    started = await plans.start([work(f"s{n}", when=f"length(inputs.x) > `{n}`") for n in range(20)], inputs=INPUTS)
    await started.ended()
    assert await rests(started) == 0


async def rests(started: Started) -> int:
    """How often the workflow rested, by its history: each rest is a timer of a millisecond."""
    events = [event for history in await started.histories() for event in history.events]
    timers = [event.timer_started_event_attributes.start_to_fire_timeout.ToMilliseconds() for event in events]
    return timers.count(1)


async def test_a_long_command_with_many_insertions_is_quoted_in_time(plans: Plans) -> None:
    steps = [
        work("a", args={"value": "x"}),
        command("shells", "sh " * 20_000 + "{{a}}"),
        command("cases", "case " * 12_000 + "{{a}}"),
        command("insertions", "echo " + "{{a}} " * MAX_IN_CODE),
        {
            "id": "python",
            "tool": "run_python",
            "args": {"code": "x={{a}};" * MAX_IN_CODE},
            "dependsOn": ["a"],
            "when": "`false`",
        },
        work("text", "a", args={"value": "{{a}} " * 10_000}),
    ]
    view = await beside(plans, await plans.start(steps))
    assert statuses(view) == {"a": "completed", "text": "completed"} | dict.fromkeys(
        ("shells", "cases", "insertions", "python"), "skipped"
    )
