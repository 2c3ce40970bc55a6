"""`maxParallel` of a loop, whatever its items wait for: no more of them are in progress at a time, before or after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from plansurvive.activities.lifecycle.check_plan import PlanChecker
from plansurvive.plans.activity_io import CheckRequest
from plansurvive.plans.model import Plan
from tests.kit.driving import Plans, Started, step, work
from tests.plans.building import spec

Data = dict[str, Any]
ITEMS = ["a", "b", "c"]


def _at(name: str, *needs: str, **more: Any) -> Data:
    args = {"name": f"{{{{item}}}}.{name}", **more.pop("args", {})}
    return work(name, *needs, seconds=0.1, **more) | {"args": {"seconds": 0.1, **args}}


def _loop(steps: Sequence[Data], **more: Any) -> Data:
    rule = {"items": ITEMS, "key": "@", "maxParallel": 1}
    return {"id": "each", "forEach": rule, "steps": list(steps), **more}


class Wait(NamedTuple):
    """What each item waits for between its work before and after."""

    loop: Data
    signal: str = ""
    message: Data = {}  # noqa: RUF012
    names: str = ""
    """The step of which all items await something."""


ASK: Data = {"id": "q", "tool": "ask", "args": {"question": "Which?"}, "dependsOn": ["in"]}
EVENT: Data = {"id": "w", "tool": "wait_for", "args": {"event": "go"}, "dependsOn": ["in"]}
LEAVING = {
    "approval": Wait(_loop([_at("in"), _at("out", "in", requiresApproval=True)]), "approve", {"stepId": "each[*].out"}),
    "approval first": Wait(
        _loop([_at("in", requiresApproval=True), _at("out", "in")]), "approve", {"stepId": "each[*].in"}
    ),
    "approval of the block": Wait(
        _loop([_at("in"), _at("out", "in")], requiresApproval=True), "approve", {"stepId": "each[*]"}
    ),
    "approval of a block inside": Wait(
        _loop([_at("in"), {
            "id": "b", "requiresApproval": True, "dependsOn": ["in"], "steps": [_at("out")],
        }]), "approve", {"stepId": "each[*].b"},
    ),
    "event": Wait(_loop([_at("in"), EVENT, _at("out", "w")]), "event", {"name": "go"}),
    "answer": Wait(_loop([_at("in"), ASK, _at("out", "q")]), "answer", {"value": "yes"}, "q"),
    "denial, then finally": Wait(
        _loop([_at("in"), _at("gate", "in", requiresApproval=True)], **{"finally": [_at("out")]}),
        "deny", {"stepId": "each[*].gate"},
    ),
    "no approval in time, then catch": Wait(
        _loop(
            [_at("in"), _at("gate", "in", requiresApproval=True, approval={"timeout": 0.6, "onTimeout": "fail"})],
            catch=[{"steps": [_at("out")]}],
        )
    ),
    "approval by the time limit": Wait(
        _loop([
            _at("in"), _at("out", "in", requiresApproval=True, approval={"timeout": 0.6, "onTimeout": "approve"}),
        ])
    ),
}  # fmt: skip
POLL: Data = {
    "id": "poll", "tool": "work", "args": {"name": "{{item}}.poll", "value": "{{round}}"}, "dependsOn": ["in"],
    "repeat": {"until": "@ == '2'", "limit": 3, "delay": 0.3},
}  # fmt: skip
HOLDING = {
    "sleep": _loop([_at("in"), {"id": "s", "tool": "sleep", "args": {"seconds": 0.3}, "dependsOn": ["in"]},
                    _at("out", "s")]),
    "rest between rounds": _loop([_at("in"), POLL, _at("out", "poll")]),
    "retry": _loop([
        _at("in"), _at("again", "in", args={"fails": 1}, retry={"attempts": 2, "delay": 0.3}), _at("out", "again"),
    ]),
    "child plan": _loop([
        _at("in"),
        {"id": "p", "tool": "plan", "dependsOn": ["in"], "args": {"steps": [
            {"id": "s", "tool": "sleep", "args": {"seconds": 0.3}}]}},
        _at("out", "p"),
    ]),
    "skipped step": _loop([_at("in"), _at("no", "in", when="`false`"), _at("out", "no")]),
}  # fmt: skip


def at_work(ledger: Sequence[Sequence[str]]) -> int:
    """How many items were working at a time at most."""
    most, open_ones = 0, set[str]()
    for what, name, *_ in ledger:
        if what == "start":
            open_ones.add(name)
        else:
            open_ones.discard(name)
        most = max(most, len({each.partition(".")[0] for each in open_ones}))
    return most


def began(plans: Plans, suffix: str) -> list[str]:
    """The items in the order in which they came to a step."""
    return [name.removesuffix(suffix) for what, name, *_ in plans.ledger if what == "start" and name.endswith(suffix)]


async def _all_wait(plan: Started, kind: Wait) -> None:
    if kind.signal == "event":
        await plan.until(
            lambda view: step(view, "each").get("inside", {}).get("counts", {}).get("awaiting event") == len(ITEMS),
            "all wait for the event",
        )
    else:
        await plan.until(lambda view: len(view["pending"]) == len(ITEMS), "all items await a person")


@pytest.mark.parametrize("name", LEAVING)
@pytest.mark.crosses_runs
async def test_items_that_awaited_somebody_take_places_again_in_the_order_of_the_list(plans: Plans, name: str) -> None:
    kind = LEAVING[name]
    plan = await plans.start([kind.loop])
    if kind.signal:
        await _all_wait(plan, kind)
    for item in reversed(ITEMS) if kind.names else ():
        await plan.signal(kind.signal, {**kind.message, "stepId": f"each[{item}].{kind.names}"})
    if kind.signal and not kind.names:
        await plan.signal(kind.signal, kind.message)
    await plan.ended()
    assert sorted(began(plans, ".out")) == ITEMS
    assert at_work(plans.ledger) == 1
    if kind.signal and not kind.names:  # answers come one after the other
        assert began(plans, ".out") == ITEMS


@pytest.mark.parametrize("name", HOLDING)
async def test_an_item_that_waits_for_nobody_keeps_its_place(plans: Plans, name: str) -> None:
    await plans.run([HOLDING[name]])
    order = [line[1].partition(".")[0] for line in plans.ledger]
    assert list(dict.fromkeys(order)) == ITEMS
    assert order == sorted(order), "no item begins before the one before it has ended"


@pytest.mark.crosses_runs
async def test_approved_items_come_before_those_that_have_not_begun(plans: Plans) -> None:
    first = _at("in", args={"until": "{{item}}.go"})
    gate = _at("gate", requiresApproval=True, when="item == 'a'")
    plan = await plans.start([_loop([gate, first | {"dependsOn": ["gate"]}])])
    await plan.until(lambda _: ["start", "b.in", "1"] in plans.ledger, "b has the place of a, which asks")
    await plan.approve("each[a].gate")
    await plan.until(lambda view: not view["pending"], "a waits for its place")
    for item in ITEMS:
        (plans.workspace / f"{item}.go").touch()
    await plan.ended()
    assert began(plans, ".in") == ["b", "a", "c"]
    assert at_work(plans.ledger) == 1


@pytest.mark.crosses_runs
async def test_nested_loops_keep_both_limits(plans: Plans) -> None:
    inner = {
        "id": "rows", "forEach": {"items": ["1", "2"], "as": "row", "key": "@", "maxParallel": 1},
        "tool": "work", "args": {"name": "{{item}}.{{row}}", "seconds": 0.1}, "requiresApproval": True,
    }  # fmt: skip
    plan = await plans.start([_loop([inner])])
    await plan.until(lambda view: len(view["pending"]) == 6, "all ask")
    await plan.approve("each[*].rows[*]")
    view = await plan.ended()
    assert view["status"] == "completed"
    assert at_work(plans.ledger) == 1
    assert [name for what, name, _ in plans.ledger if what == "start"] == [f"{a}.{n}" for a in ITEMS for n in "12"]


async def test_what_is_cancelled_ends_in_its_finally_one_item_at_a_time(plans: Plans) -> None:
    gate = _at("gate", "in", requiresApproval=True)
    plan = await plans.start([_loop([_at("in"), gate], **{"finally": [_at("out")]})])
    await plan.until(lambda view: len(view["pending"]) == len(ITEMS), "all ask")
    await plan.handle.cancel()
    await plan.ended()
    assert began(plans, ".out") == ITEMS
    assert at_work(plans.ledger) == 1


@pytest.mark.parametrize("end", ["deny", "skip", "interrupt", "cancel"])
async def test_what_waits_for_a_place_can_still_be_stopped(plans: Plans, end: str) -> None:
    loop = _loop([_at("out", requiresApproval=True, args={"until": "go"})])
    plan = await plans.start([loop])
    await plan.until(lambda view: len(view["pending"]) == len(ITEMS), "all ask")
    await plan.approve("each[a].out")
    await plan.until(lambda _: ["start", "a.out", "1"] in plans.ledger, "a works")
    await plan.approve("each[b].out")
    await plan.until(lambda view: len(view["pending"]) == 1, "b waits for a place")
    match end:
        case "deny":
            await plan.deny("each[c].out")
        case "skip":
            edits = [{"op": "skip", "stepId": f"each[{name}].out"} for name in "bc"]
            await plan.handle.execute_update("edit", {"edits": edits})
        case "interrupt":
            await plan.signal("interrupt")
        case "cancel":
            await plan.handle.cancel()
    if end != "cancel":
        (plans.workspace / "go").touch()
    view = await plan.ended()
    assert began(plans, ".out") == (["a", "b"] if end == "deny" else ["a"]), view["status"]


@pytest.mark.parametrize("new_tool", [False, True])
@pytest.mark.crosses_runs
async def test_a_loop_that_an_edit_brings_keeps_its_places_too(plans: Plans, new_tool: bool) -> None:
    kind = LEAVING["answer" if new_tool else "approval"]
    plan = await plans.start([work("hold", args={"until": "go"})])
    await plan.until(lambda _: ["start", "hold", "1"] in plans.ledger, "the plan runs")
    await plan.handle.execute_update("edit", {"edits": [{"op": "add", "step": kind.loop}]})
    (plans.workspace / "go").touch()
    await _all_wait(plan, kind)
    for item in reversed(ITEMS) if kind.names else ():
        await plan.signal(kind.signal, {**kind.message, "stepId": f"each[{item}].{kind.names}"})
    if not kind.names:
        await plan.signal(kind.signal, kind.message)
    await plan.ended()
    assert sorted(began(plans, ".out")) == ITEMS
    assert at_work([line for line in plans.ledger if "hold" not in line]) == 1


@pytest.mark.parametrize("path", ["", "finally"])
def test_the_facts_of_a_plan_name_places_only_where_it_has_them(path: str) -> None:
    worker = PlanChecker({"work": spec("work")}, default_workspace="/tmp")

    def facts(loop: Data) -> Data:
        own = {"steps": [loop]} if not path else {"steps": [work("a")], path: [loop]}
        return worker.check_plan(CheckRequest(plan=Plan.model_validate(own))).model_dump(mode="json")

    assert facts(_loop([_at("in")]))["places"]
    assert "places" not in facts(_loop([_at("in")]) | {"forEach": ITEMS}), "a worker of 1.0.0 reads such facts"
