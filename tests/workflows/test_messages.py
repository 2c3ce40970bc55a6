"""Malformed messages on a real server: none may wedge a plan, each leaves a line in its log."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowFailureError, WorkflowQueryFailedError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from tests.kit.driving import Plans, refusals, statuses, step, work


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


BYTES = RawValue(Payload(metadata={"encoding": b"binary/plain"}, data=b"\x00\xff"))
SHAPES: list[tuple[Any, ...]] = [
    (),
    ({"stepId": "gate"}, {"stepId": "gate"}),
    (None,),
    ("gate",),
    (7,),
    (True,),
    (["gate"],),
    ({},),
    ({"stepId": None},),
    ({"stepId": ""},),
    ({"stepId": ["gate"]},),
    ({"stepid": "gate"},),
    ({"stepId": "gate", "extra": 1},),
    ({"stepId": "gate", "by": {"name": "ann"}},),
    ({"stepId": "gate", "comment": "x" * 17_000},),
    ({"stepId": "gate", "version": "1"},),
    ({"stepId": "gate", "version": True},),
    ({"stepId": "nowhere"},),
    ({"stepId": "gate", "args": "x"},),
    ({"stepId": "gate", "args": {"name": "gate", "value": _deep(100)}},),
    ({"stepId": "gate", "args": {"name": "gate", "value": float("nan")}},),
    (BYTES,),
]
CONTROLS: list[tuple[Any, ...]] = [
    ({}, {}),
    ("now",),
    (5,),
    ([],),
    ({"by": 5},),
    ({"byy": "ann"},),
    ({"by": "x" * 17_000},),
    (BYTES,),
]


@pytest.mark.parametrize("name", ["approve", "deny"])
async def test_malformed_decisions_decide_nothing_and_are_all_logged(plans: Plans, name: str) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    for shape in SHAPES:
        await plan.signal(name, *shape)
    view = await plan.until(lambda view: len(refusals(view)) == len(SHAPES), f"{len(SHAPES)} refusals")
    assert "awaiting" in step(view, "gate")
    assert all(text.startswith("REFUSED:") for text in refusals(view))
    await plan.approve("gate")
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.parametrize("name", ["pause", "unpause", "begin"])
async def test_malformed_controls_change_nothing_and_are_all_logged(plans: Plans, name: str) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    for shape in CONTROLS:
        await plan.signal(name, *shape)
    view = await plan.until(lambda view: len(refusals(view)) == len(CONTROLS), f"{len(CONTROLS)} refusals")
    assert view["status"] == "running"
    await plan.approve("gate")
    assert (await plan.ended())["status"] == "completed"


async def test_unknown_signals_are_logged(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    for shape in [(), ({"stepId": "gate"},), (None, None), (BYTES,)]:
        await plan.signal("aprove", *shape)
    view = await plan.until(lambda view: len(refusals(view)) == 4, "4 refusals")
    assert set(refusals(view)) == {"REFUSED:UNKNOWN_SIGNAL signal: there is no signal 'aprove'"}
    await plan.approve("gate")
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.modes("plain")
async def test_malformed_queries_are_refused_and_harm_nothing(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    for shape in [("x",), ({"since": "x"},), ({"since": -1},), ({"sinc": 1},)]:
        with pytest.raises(WorkflowQueryFailedError):
            await plan.handle.query("events", args=shape)
    assert await plan.handle.query("events") == await plan.handle.query("events", {"since": 0})
    assert await plan.handle.query("plan", {"anything": 1}) == await plan.view()
    await plan.approve("gate")
    assert statuses(await plan.ended()) == {"gate": "completed"}


STEP = {"id": "a", "tool": "work", "args": {"name": "a"}}
BROKEN = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b'{"plan":'))


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (None,),
        ("plan",),
        ([STEP],),
        ({},),
        ({"steps": [STEP]},),
        ({"plan": None},),
        ({"plan": "a plan"},),
        ({"plan": {"steps": []}},),
        ({"plan": {"steps": [{"id": "a"}]}},),
        ({"plan": {"steps": [STEP, STEP]}},),
        ({"plan": {"steps": [{**STEP, "tool": "wrok"}]}},),
        ({"plan": {"steps": [{**STEP, "dependsOn": ["a"]}]}},),
        ({"plan": {"steps": [STEP, {**STEP, "id": "b", "when": "nothing_like_it(a)"}]}},),
        ({"plan": {"steps": [STEP, {**STEP, "id": "b", "when": "a ||"}]}},),
        ({"plan": {"steps": [{**STEP, "args": {"name": "$b"}}]}},),
        ({"plan": {"steps": [{**STEP, "args": {"name": "a", "value": _deep(100)}}]}},),
        ({"plan": {"steps": [STEP]}, "options": {"maxParallel": 0}},),
        ({"plan": {"steps": [STEP]}, "options": {"workspace": "/nowhere/at/all"}},),
        ({"plan": {"steps": [STEP]}, "options": {"inputs": {"x": 1}}},),
        ({"plan": {"steps": [STEP]}}, {"plan": {"steps": [STEP]}}),
        (BYTES,),
    ],
    ids=lambda arguments: repr(arguments)[:60],
)
@pytest.mark.modes("plain")
async def test_a_malformed_plan_fails_at_once_with_invalid_plan(plans: Plans, arguments: tuple[Any, ...]) -> None:
    plan = await plans.start_with(*arguments)
    with pytest.raises(WorkflowFailureError) as raised:
        await plan.handle.result()
    cause = raised.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "INVALID_PLAN"
    assert cause.details[0][0]["code"]
    assert plans.ledger == []


@pytest.mark.modes("plain")
async def test_an_input_that_is_no_json_fails_the_plan_and_does_not_wedge_it(plans: Plans) -> None:
    plan = await plans.start_with(BROKEN)
    with pytest.raises(WorkflowFailureError) as raised:
        await plan.handle.result()
    assert "timed out" not in str(raised.value.cause)
