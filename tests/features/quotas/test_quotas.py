"""Plans with the same label: at most so many at a time, visibly, and never stuck behind an ended one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from plansurvive.features.quotas.rules import key_of
from tests.chaos.conftest import Chaos
from tests.client.cli.command import plan, written
from tests.kit.driving import WAITS, Plans, Started, View, statuses, work
from tests.kit.waiting import until


async def holding(plans: Plans, labels: dict[str, str], name: str = "first") -> Started:
    """A plan that has a place and is at work until it may end."""
    started = await plans.start([work(name, args=WAITS)], labels=labels)
    await started.until_status(name, "running")
    return started


async def waiting(plans: Plans, labels: dict[str, str], *steps: dict[str, Any], **more: Any) -> Started:
    """A plan that waits for a place, in the line."""
    started = await plans.start(list(steps) or [work("second")], labels=labels, **more)
    await started.until(lambda view: view.get("notices", {}).get("quotas", {}).get("holds"), "it waits")
    [label] = [f"{name}={value}" for name, value in labels.items()]
    await until(lambda: _is_in_line(plans, label, started.id), "it is in the line")
    return started


async def _is_in_line(plans: Plans, label: str, workflow_id: str) -> bool:
    return workflow_id in (await places(plans, label))["waiting"]


async def places(plans: Plans, label: str) -> View:
    found: View = await plans.client.get_workflow_handle(key_of(label)).query("places")
    return found


async def test_one_plan_runs_after_the_other_and_that_is_shown(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    second = await waiting(plans, labels)
    view = await second.view()
    assert statuses(view) == {"second": "ready"}
    assert view["notices"]["quotas"]["text"] == (
        f"waits for its turn among the plans with the label {quotas}=acme, at most 1 plan at a time"
    )
    assert "waits for its turn" in await second.handle.query("text", {"detailed": True})
    assert not (await first.view())["notices"]["quotas"]["holds"]
    row = await places(plans, f"{quotas}=acme")
    assert (row["most"], row["running"], row["waiting"]) == (1, [first.id], [second.id])
    for free in ({}, {quotas: "other"}):  # the control: without the label, or with another value, nobody waits
        assert (await plans.run([work(f"free{len(free)}")], labels=free))["status"] == "completed"
    plans.go()
    assert (await second.ended())["status"] == "completed"
    names = [line[:2] for line in plans.ledger]
    assert names.index(["end", "first"]) < names.index(["start", "second"])
    await plans.client.get_workflow_handle(key_of(f"{quotas}=acme")).result()  # nobody is left


async def test_as_many_plans_run_as_the_quota_says(plans: Plans, quotas: str) -> None:
    labels = {quotas: "more"}
    await asyncio.gather(*(holding(plans, labels, name) for name in ("one", "two")))
    third = await waiting(plans, labels)
    plans.go()
    assert (await third.ended())["status"] == "completed"


async def test_a_plan_that_waits_can_be_cancelled_and_runs_nothing(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    second = await waiting(plans, labels, **{"finally": [work("tell")]})
    third = await waiting(plans, labels, work("third"))
    asked = await plans.client.get_workflow_handle(second.id).query("summary")
    assert asked["heldUp"].startswith(f"waits for its turn among the plans with the label {quotas}=acme")
    await second.handle.cancel()
    assert (await second.ended())["status"] == "cancelled"
    plans.go()
    assert (await third.ended())["status"] == "completed"
    await first.ended()
    assert {line[1] for line in plans.ledger} == {"first", "third"}


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_plan_that_is_terminated_frees_its_place(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    second = await waiting(plans, labels)
    await first.handle.terminate("killed")
    plans.go()
    assert (await second.ended())["status"] == "completed"


async def test_a_child_plan_runs_in_the_place_of_its_parent(plans: Plans, quotas: str) -> None:
    child = {"id": "child", "tool": "plan", "args": {"file": "child.yaml"}}
    (plans.workspace / "child.yaml").write_text(
        f"labels: {{{quotas}: acme}}\nsteps:\n  - {{id: inner, tool: work, args: {{name: inner}}}}\n"
    )
    assert (await plans.run([child], labels={quotas: "acme"}))["status"] == "completed"


async def test_two_labels_and_a_workspace_are_waited_for_in_one_order(plans: Plans, quotas: str) -> None:
    both: dict[str, Any] = {"workspaceLock": True, "labels": {quotas: "acme"}}
    first = await plans.start([work("first", args=WAITS)], labels={quotas: "acme"})
    await first.until_status("first", "running")
    second = await plans.start([work("second")], **both)  # has the workspace, and waits for the place
    await until(lambda: _is_in_line(plans, f"{quotas}=acme", second.id), "it is in the line")
    third = await plans.start([work("third")], **both)  # waits for the workspace, and is in no line meanwhile
    await third.until(lambda view: view.get("notices", {}).get("locks", {}).get("planId"), "it waits for another")
    assert (await places(plans, f"{quotas}=acme"))["waiting"] == [second.id]
    plans.go()
    for started in (first, second, third):
        assert (await started.ended())["status"] == "completed"


async def test_continue_as_new_keeps_the_place_and_the_turn(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    steps = [work("a"), work("b", "a"), work("ask", "b", requiresApproval=True)]
    first = await plans.start(steps, {"historyLimit": 10}, labels=labels)
    await first.until_asked("ask")
    second = await waiting(plans, labels)
    await asyncio.gather(*(second.signal("files_changed", {"paths": ["x"]}) for _ in range(3)))
    assert (await places(plans, f"{quotas}=acme"))["running"] == [first.id]
    await first.approve("ask")
    await first.ended()
    assert (await second.ended())["status"] == "completed"
    assert len(await first.histories()) > 1


@pytest.mark.slow
async def test_a_place_outlives_the_worker_of_its_plan(chaos: Chaos, tmp_path: Path) -> None:
    """A worker killed while a plan has a place: it is neither lost nor left behind."""
    plans, labels = chaos.plans, {"customer": "acme"}
    state = Path(chaos.worker.environ["PLANS_STATE_DIR"])
    state.mkdir(parents=True, exist_ok=True)
    (state / "quotas.toml").write_text("[labels]\ncustomer = 1\n")
    await chaos.worker.up()
    first = await plans.start([work("first", args=WAITS)], labels=labels)
    await until(lambda: ["start", "first", "1"] in plans.ledger, "the step runs")
    second = await waiting(plans, labels)

    chaos.worker.kill()
    await chaos.worker.up()
    row = await places(plans, "customer=acme")
    assert (row["running"], row["waiting"]) == ([first.id], [second.id])
    await until(lambda: ["start", "first", "2"] in plans.ledger, "the step runs again")
    assert not [line for line in plans.ledger if line[1] == "second"]  # nobody came in between

    plans.go()
    assert (await first.ended())["status"] == "completed"
    assert (await second.ended())["status"] == "completed"
    await plans.client.get_workflow_handle(key_of("customer=acme")).result()  # no place is left behind


async def test_the_command_says_who_runs_and_who_waits(plans: Plans, quotas: str, environ: dict[str, str]) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    second = await waiting(plans, labels)
    shown = await plan(environ, "quotas")
    assert f"{quotas}=more: 2 plans at a time\n" in shown.out
    assert f"{quotas}=acme: 1 of 1 running, 1 waiting\n" in shown.out
    assert f"  waits: {second.id.removeprefix('plan-')}\n" in shown.out
    found = (await plan(environ, "quotas", "--json")).json
    assert {"label": f"{quotas}=acme", "most": 1, "running": [first.id], "waiting": [second.id]} in found["now"]
    plans.go()
    assert (await second.ended())["status"] == "completed"


async def test_a_list_of_the_plans_with_a_label(
    plans: Plans, quotas: str, environ: dict[str, str], tmp_path: Path
) -> None:
    look = {"id": "look", "tool": "list_directory", "args": {"path": "."}}
    made = {"title": "Labelled", "labels": {quotas: "listed"}, "steps": [look]}
    name = (await plan(environ, "start", written(tmp_path / "plan.json", made), "--json")).json["planId"]
    assert plans.workspace.is_dir()

    async def names(*options: str) -> list[str]:
        return [row["planId"] for row in (await plan(environ, "list", *options, "--json")).json]

    async def is_listed() -> bool:
        return await names("--label", f"{quotas}=listed") == [name] and await names("--label", quotas) == [name]

    await until(is_listed, "the server has indexed it")
    assert await names("--label", f"{quotas}=listed", "--label", "other") == []
    assert "No plan fits --label." in (await plan(environ, "list", "--label", f"{quotas}=none")).err
    assert (await plan(environ, "list", "--label", "=x")).code == 2
