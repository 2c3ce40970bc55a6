"""An event that is sent to a plan reaches every step that waits for it, in the plan and in the plans below it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from temporalio.service import RPCError

from plansurvive.client import runs
from plansurvive.client.verbs import resume
from plansurvive.plans.child_ids import child_id
from plansurvive.plans.errors import PlanError
from tests.kit.driving import WAITS, Plans, Started, refusals, step, work
from tests.kit.waiting import until
from tests.nightly import sampled

pytestmark = [pytest.mark.uses("children"), pytest.mark.uses("waiting")]


def wait(step_id: str = "wait", event: str = "go", needs: str = "", **more: Any) -> dict[str, Any]:
    """A step that waits for an event."""
    depends = {"dependsOn": [needs]} if needs else {}
    return {"id": step_id, "tool": "wait_for", "args": {"event": event}, **depends, **more}


def sub(step_id: str, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A step that runs these steps as a child plan."""
    return {"id": step_id, "tool": "plan", "args": {"steps": list(steps)}, **more}


class Place(NamedTuple):
    """Where steps are."""

    around: Callable[[list[dict[str, Any]]], dict[str, Any]]
    """The step of the outermost plan that has them inside."""
    path: tuple[str, ...]
    """The steps whose child plans they are in."""
    prefix: str = ""
    """What their ids begin with there."""

    async def owner(self, plan: Started) -> Started:
        """The plan that the steps are in."""
        name = plan.id.removeprefix("plan-")
        for step_id in self.path:
            name = child_id(name, step_id, 1)
        return Started(plan.client, f"plan-{name}")

    async def value(self, plan: Started, step_id: str = "wait") -> Any:
        """What a step has received."""
        owner = await self.owner(plan)
        state = await owner.handle.query("state")
        return state["steps"][f"{self.prefix}{step_id}"]["result"]["value"]


def _loop(mode: str) -> Callable[[list[dict[str, Any]]], dict[str, Any]]:
    loop = {"items": ["a"], "mode": mode, "key": "@"}
    return lambda steps: {"id": "top", "forEach": loop, "steps": steps, "output": steps[-1]["id"]}


PLACES = {
    "block": Place(lambda steps: {"id": "top", "steps": steps}, (), "top."),
    "child": Place(lambda steps: sub("top", *steps), ("top",)),
    "grandchild": Place(lambda steps: sub("top", sub("kid", *steps)), ("top", "kid")),
    "batch": Place(_loop("plans"), ("top[0..0]",), "top[a]."),
    "item": Place(_loop("steps"), (), "top[a]."),
    "child of a batch": Place(lambda steps: _loop("plans")([sub("kid", *steps)]), ("top[0..0]", "top[a].kid")),
}


async def until_awaited(plan: Started, place: Place, event: str = "go") -> None:
    """The step waits, and the outermost plan knows that one waits below."""
    owner = await place.owner(plan)

    async def both() -> bool:
        try:
            found = [await runs.summary(plan.client, each.id.removeprefix("plan-")) for each in (owner, plan)]
        except (PlanError, RPCError):
            return False  # it has not begun
        return all(event in [each.event for each in known.asks] for known in found)

    await until(both, f"{event} is awaited in {owner.id}, and {plan.id} knows")


async def send(plan: Started, name: str = "go", data: Any = None) -> str:
    """Send an event to a plan; returns what it says."""
    return str((await plan.handle.execute_update("event", {"name": name, "data": data, "by": "ann"}))["text"])


async def late(plans: Plans, place: Place) -> None:
    """It comes while the step waits: it is received, and its sender is recorded where it is."""
    plan = await plans.start([place.around([wait()])])
    await until_awaited(plan, place)
    assert "other" in await send(plan, "other")
    text = await send(plan, data={"n": 1})
    assert ("passed on to the child plan of top" in text) is bool(place.path), text
    assert (await plan.ended())["status"] == "completed"
    assert await place.value(plan) == {"n": 1}
    log = [each["text"] for each in (await (await place.owner(plan)).view())["log"] if each["kind"] == "event"]
    assert log[-1] == f"step '{place.prefix}wait' received event 'go' of ann", log


async def early(plans: Plans, place: Place) -> None:
    """They come before the child plan has begun: the oldest is received."""
    plan = await plans.start([wait("first", "begin"), place.around([wait()]) | {"dependsOn": ["first"]}])
    await plan.until_asked("first")
    assert [await send(plan, data=1), await send(plan, data=2)] == [
        "event 'go' kept for steps that will wait for it"
    ] * 2
    await send(plan, "begin")
    assert (await plan.ended())["status"] == "completed"
    assert await place.value(plan) == 1


async def twice(plans: Plans, place: Place) -> None:
    """Each step receives each once: one that is repeated waits for the next one, another one has all."""
    rounds = {
        "id": "rounds",
        "tool": "wait_for",
        "args": {"event": "go"},
        "repeat": {"until": "@ == `2`", "keep": "all"},
    }
    plan = await plans.start([place.around([rounds, wait("again", needs="rounds"), wait(needs="again")])])
    await until_awaited(plan, place)
    await send(plan, data=1)
    await send(plan, data=2)
    view = await plan.ended()
    assert view["status"] == "completed", view
    assert [await place.value(plan, f"rounds#{number}") for number in (1, 2)] == [1, 2]
    assert [await place.value(plan, name) for name in ("again", "wait")] == [1, 1]


async def resumed(plans: Plans, place: Place) -> None:
    """A plan that is interrupted and resumed: nothing is received twice, what was kept is received."""
    held = work("held", "got", args=WAITS)
    rest = [held, wait("next", "later", "held"), wait("got again", needs="next") | {"id": "more"}]
    plan = await plans.start([place.around([wait("got"), *rest])])
    await until_awaited(plan, place)
    await send(plan, data=1)
    owner = await place.owner(plan)
    await owner.until(lambda view: f"'{place.prefix}got' received" in str(view["log"]), "it is received")
    await until(lambda: any(line[1] == "held" for line in plans.ledger), "the next step runs")
    await send(plan, "later", "kept")
    await plan.signal("interrupt")
    await owner.until(lambda view: view["stopped"], "it is interrupted")
    plans.go()
    await plan.ended()
    again = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
    view = await again.ended()
    assert view["status"] == "completed", view
    assert [await _value_below(again, name) for name in ("got", "next", "more")] == [1, "kept", 1]


async def _value_below(plan: Started, name: str) -> Any:
    """What a step has received, wherever it is below a plan."""
    state = await plan.handle.query("state")
    for step_id, each in state["steps"].items():
        if step_id.rpartition(".")[2] == name:
            return each["result"]["value"]
        child = each.get("parts", {}).get("children", {}).get("child")
        if child and (found := await _value_below(Started(plan.client, f"plan-{child['planId']}"), name)) is not None:
            return found
    return None


async def continued(plans: Plans, place: Place) -> None:
    """A plan that has continued as new while its step waits receives it still."""
    steps = [place.around([wait()])]
    plan = await plans.start(steps, {"historyLimit": 12})
    owner = await place.owner(plan)
    await until_awaited(plan, place)

    for _ in range(12):
        await owner.signal("event", {"name": "noise"})

    async def continues() -> bool:
        return len(await owner.histories()) > 1

    await until(continues, "it continues as new")
    await until_awaited(plan, place)
    await send(plan, data=1)
    assert (await plan.ended())["status"] == "completed"
    assert await place.value(plan) == 1


HOW: dict[str, Callable[[Plans, Place], Awaitable[None]]] = {
    "late": late, "early": early, "twice": twice, "resumed": resumed, "continued": continued,
}  # fmt: skip


@pytest.mark.parametrize(("where", "how"), sampled([(where, how) for where in PLACES for how in HOW], 3, 8))
async def test_an_event_reaches_the_step_wherever_it_is(plans: Plans, where: str, how: str) -> None:
    await HOW[how](plans, PLACES[where])


async def test_the_child_plan_of_a_next_round_waits_for_the_next_event(plans: Plans) -> None:
    rounds = sub("top", wait()) | {"repeat": {"until": "wait == `2`", "keep": "all"}}
    plan = await plans.start([rounds])
    await until_awaited(plan, Place(lambda _: {}, ("top#1",)))
    await send(plan, data=1)
    await until_awaited(plan, Place(lambda _: {}, ("top#2",)))
    await send(plan, data=2)
    assert step(await plan.ended(), "top")["result"]["value"] == [{"wait": 1}, {"wait": 2}]


async def test_what_is_left_below_receives_an_event_after_a_child_plan_was_cancelled(plans: Plans) -> None:
    plan = await plans.start([sub("gone", wait()), sub("left", wait())])
    places = {name: Place(lambda _: {}, (name,)) for name in ("gone", "left")}
    for place in places.values():
        await until_awaited(plan, place)
    await (await places["gone"].owner(plan)).handle.cancel()
    await plan.until_status("gone", "failed")
    assert await send(plan, data=1) == "event 'go' passed on to the child plan of left"
    view = await plan.ended()
    assert step(view, "left")["result"]["value"] == {"wait": 1}
    assert refusals(view) == []


async def test_many_events_come_each_to_its_step(plans: Plans) -> None:
    """More names than one message asks for, more data than one passes on and than a plan keeps."""
    number = 120
    plan = await plans.start([sub("top", *[wait(f"w{index}", f"e{index}") for index in range(number)])])

    async def knows() -> bool:
        parts = (await plan.handle.query("state"))["steps"]["top"].get("parts", {})
        return len(parts.get("waiting", {}).get("names", ())) == number

    await until(knows, "the plan knows all that is awaited")
    for index in range(number):
        await plan.signal("event", {"name": f"e{index}", "data": f"{index} {'x' * 3_000}"})
    assert (await plan.ended())["status"] == "completed"
    place = Place(lambda _: {}, ("top",))
    assert (await place.value(plan, "w7")).startswith("7 x")


async def test_messages_of_others_change_nothing(plans: Plans) -> None:
    plan = await plans.start([sub("top", wait())])
    place = Place(lambda _: {}, ("top",))
    await until_awaited(plan, place)
    await plan.signal("events_wanted", {"stepId": "top", "child": "other", "wants": {"go": 0}})
    await plan.until_logged("refused", "UNKNOWN_AGENT")
    await plan.signal(
        "events_passed", {"events": [{"number": 1, "name": "go", "text": "1", "time": "2026-01-01T00:00:00Z"}]}
    )
    await plan.until_logged("refused", "NOT_ASKED")
    await send(plan, data=1)
    assert step(await plan.ended(), "top")["result"]["value"] == {"wait": 1}
