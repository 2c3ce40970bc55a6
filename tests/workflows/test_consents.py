"""Certain people must approve: who counts, and how far it is. What does not get around it: `test_consent_attacks`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.client import Client

from plansurvive.client import decisions, runs
from plansurvive.client.decisions import Choice
from plansurvive.features.policy.model import Consents
from plansurvive.plans.editing.edits import SetField
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.resume import resumed
from plansurvive.plans.run import Decision, Options, run_of, text_of
from plansurvive.runtime.settings import Settings
from tests.kit.desks import Desk, Policy
from tests.kit.driving import Plans, Started, step, work
from tests.workflows.conftest import MakeWorker
from tests.workflows.test_people import ann, bob, page

__all__ = ["ann", "bob", "page"]

pytestmark = pytest.mark.uses("signing", "policy")


@pytest.fixture
def cara(temporal_client: Client, settings: Settings, tmp_path: Any) -> Desk:
    return Desk(temporal_client, settings, tmp_path, "cara")


@pytest.fixture
def policy(settings: Settings, ann: Desk, bob: Desk, cara: Desk, page: Desk) -> Policy:
    return Policy(settings, ann, bob, cara, page)


async def begun(plans: Plans, desk: Desk | None, **more: Any) -> Started:
    """A plan that this person has started, or somebody who proves nothing."""
    started = await runs.start(
        desk.client if desk else plans.client,
        {"steps": [work("w", **more)]},
        options=Options(workspace=str(plans.workspace), by=desk.own.name if desk else "ann"),
        queue=plans.queue,
    )
    plan = Started(plans.client, started.workflow_id)
    await plan.until_asked("w")
    return plan


async def approve(plan: Started, desk: Desk, **more: Any) -> Decision:
    return await decisions.decide(
        desk.client, plan.id, Choice(step_id="w", **{"by": desk.own.name, **more}), approved=True
    )


async def refused(plan: Started, desk: Desk, **more: Any) -> str:
    with pytest.raises(Refused) as caught:
        await approve(plan, desk, **more)
    return caught.value.code


async def pending(plan: Started) -> dict[str, Any]:
    view = await plan.until_asked("w")
    return next(each for each in view["pending"] if each["stepId"] == "w")


@pytest.mark.crosses_runs
async def test_two_people_approve_and_the_plan_shows_how_far_they_are(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk, cara: Desk
) -> None:
    policy.rule('by = ["ann", "bob"]\ncount = 2')
    async with make_worker():
        plan = await begun(idle, cara)
        assert "rule 'release': 0 of 2; ann and bob must approve" in (await pending(plan))["reasons"]
        first = await approve(plan, ann)
        assert (first.needed, first.missing) == (2, 1)
        shown = (await pending(plan))["consents"][0]
        assert (shown["rule"], shown["by"], shown["count"], shown["missing"]) == ("release", ["ann", "bob"], 2, 1)
        assert [each["by"] for each in shown["decided"]] == ["ann"]
        assert idle.ledger == []
        assert await refused(plan, ann) == "ALREADY_DECIDED"
        assert await refused(plan, cara) == "MAY_NOT_DECIDE"
        second = await approve(plan, bob)
        assert second.missing == 0
        view = await plan.ended()
    assert step(view, "w")["status"] == "completed"
    assert step(view, "w")["result"]["policy"]["rules"] == ["release"]


@pytest.mark.parametrize("stage", ["started", "edited"])
async def test_an_author_does_not_approve_their_own(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk, stage: str
) -> None:
    policy.rule("not_author = true")
    async with make_worker():
        plan = await begun(idle, ann if stage == "started" else bob)
        if stage == "edited":
            edit = SetField(op="set", step_id="w", path="description", value="another")
            await runs.edit(ann.client, plan.id, [edit], by="ann")
        assert await refused(plan, ann) == "MAY_NOT_DECIDE"
        assert idle.ledger == []
        await plan.deny("w")
        await plan.ended()


async def test_one_denial_denies(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk, temporal_client: Client
) -> None:
    policy.rule("count = 3")
    async with make_worker():
        plan = await begun(idle, ann)
        await approve(plan, ann)
        await approve(plan, bob)
        await decisions.decide(temporal_client, plan.id, Choice(step_id="w", by="eve"), approved=False)
        assert step(await plan.ended(), "w")["status"] == "skipped"


async def test_approvals_that_a_start_brings_count_for_nothing(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk
) -> None:
    """The state of a run that another one continues is data of whoever starts it."""
    policy.rule("count = 2")
    async with make_worker():
        plan = await begun(idle, ann)
        await approve(plan, ann)
        run = run_of(await plan.handle.query("state"))
        brought = run.part(Consents).steps["w"]
        assert [each.signed for each in brought.decided] == ["ann"]
        forged = resumed(run, "forged", datetime.now(UTC))
        both = [*brought.decided, brought.decided[0].model_copy(update={"by": "bob", "signed": "bob"})]
        forged.keep(Consents(steps={"w": brought.model_copy(update={"decided": both})}))
        forged.decisions["w"] = Decision(approved=True, by="bob", signed="bob", time=datetime.now(UTC))
        forged.resumes, forged.starter = "", "cara"
        started = await idle.client.start_workflow(
            "PlanWorkflow", {"run": json.loads(text_of(forged))}, id="plan-forged", task_queue=idle.queue
        )
        other = Started(idle.client, started.id)
        await pending(other)
        await other.approve("w", by="bob")  # as anybody can; the attempt that follows asks by the rule
        view = await other.until(lambda view: any("consents" in each for each in view["pending"]), "the rule asks")
        assert [each["decided"] for each in view["pending"][0]["consents"]] == [[]]
        await other.deny("w")
        await other.ended()
        assert idle.ledger == []
        await plan.deny("w")


async def test_a_worker_with_another_policy_asks_by_its_own(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk, cara: Desk
) -> None:
    """Decided under one policy and begun under a stricter one: what counts is that of the moment of the call."""
    policy.rule('by = ["ann"]\ncount = 1')
    async with make_worker():
        plan = await begun(idle, cara)
        policy.rule('by = ["ann", "bob"]\ncount = 2')
        await approve(plan, ann)
        shown = await plan.until(
            lambda view: any(each.get("consents") and each["consents"][0]["count"] == 2 for each in view["pending"]),
            "it asks by the new rule",
        )
        [item] = shown["pending"]
        assert [each["by"] for each in item["consents"][0]["decided"]] == ["ann"], "hers still counts"
        assert idle.ledger == []
        assert (await approve(plan, bob)).missing == 0
        assert (await plan.ended())["status"] == "completed"


@pytest.mark.parametrize("vouched", [True, None])
async def test_a_login_of_the_page_proves_who_started_a_plan_there(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk, page: Desk, vouched: bool | None
) -> None:
    """Control: a page without a login proves nothing, and then one more person must approve."""
    policy.rule("not_author = true")
    async with make_worker():
        options = Options(workspace=str(idle.workspace), by="ann@example.org", vouched=vouched)
        started = await runs.start(page.client, {"steps": [work("w")]}, options=options, queue=idle.queue)
        plan = Started(idle.client, started.workflow_id)
        await plan.until_asked("w")
        if vouched:
            assert await refused(plan, ann) == "MAY_NOT_DECIDE"
        assert (await approve(plan, bob)).missing == (0 if vouched else 1)
        if not vouched:
            await approve(plan, ann)
        assert (await plan.ended())["status"] == "completed"


@pytest.mark.parametrize("vouched", [True, False])
async def test_a_login_of_the_page_proves_who_resumes_a_plan_there(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk, cara: Desk, page: Desk, vouched: bool
) -> None:
    """Control: without a login it could be anybody, and then one more person must approve."""
    policy.rule("not_author = true")
    async with make_worker():
        first = await begun(idle, cara)
        await runs.interrupt(idle.client, first.id)
        await first.ended()
        again = await runs.resume(page.client, first.id, "ann@example.org", verified=vouched)
        plan = Started(idle.client, again.workflow_id)
        assert (await pending(plan))["consents"][0]["missing"] == (1 if vouched else 2)
        assert await refused(plan, cara) == "MAY_NOT_DECIDE", "the first run was hers"
        if vouched:
            assert await refused(plan, ann) == "MAY_NOT_DECIDE"
        assert (await approve(plan, bob)).missing == (0 if vouched else 1)
        if not vouched:
            await approve(plan, ann)
        assert (await plan.ended())["status"] == "completed"


@pytest.mark.parametrize("terms", ["rule", "step", "plan"])
@pytest.mark.parametrize("tool", ["work", "plan", "agent"])
async def test_whoever_says_who_must_approve_is_heard_before_any_step_that_is_judged(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk, tool: str, terms: str
) -> None:
    """Kind of step by source of the terms. Of those that are not judged: `tests/features/policy/test_plan_terms`."""
    policy.rule('by = ["ann"]' if terms == "rule" else "", tool=tool)
    args = {"work": {"name": "w"}, "plan": {"steps": [work("inside")]}, "agent": {"objective": "do it"}}[tool]
    says = {"approval": {"by": "ann"}}
    plan_file = {
        "steps": [{"id": "w", "tool": tool, "args": args, **(says if terms == "step" else {})}],
        "defaults": says if terms == "plan" else {},
    }
    async with make_worker():
        options = Options(workspace=str(idle.workspace), by="bob")
        started = await runs.start(bob.client, plan_file, options=options, queue=idle.queue)
        plan = Started(idle.client, started.workflow_id)
        assert [each["by"] for each in (await pending(plan))["consents"] if each["by"]] == [["ann"]]
        assert await refused(plan, bob) == "MAY_NOT_DECIDE"
        assert idle.ledger == []
        if tool == "agent":
            await plan.deny("w")
        else:
            assert (await approve(plan, ann)).missing == 0
        await plan.ended()
    assert {row[1] for row in idle.ledger} == {"work": {"w"}, "plan": {"inside"}, "agent": set()}[tool]


async def test_a_decision_is_withdrawn_until_it_is_used(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk, cara: Desk, page: Desk
) -> None:
    policy.rule("count = 2")
    async with make_worker():
        plan = await begun(idle, cara)
        await approve(plan, ann)
        with pytest.raises(Refused) as caught:
            await runs.withdraw(page.client, plan.id, "w", by="ann", via="web", verified=True)
        assert caught.value.code == "UNVERIFIED", "ann has signed it with her own key"
        assert "withdrawn by ann" in await runs.withdraw(ann.client, plan.id, "w", by="ann")
        assert (await pending(plan))["consents"][0]["decided"] == []
        assert (await approve(plan, bob)).missing == 1
        assert idle.ledger == []
        assert (await approve(plan, ann)).missing == 0
        await plan.ended()
        control = await begun(idle, cara)
        await runs.pause(idle.client, control.id)
        await approve(control, ann)
        assert (await approve(control, bob)).missing == 0
        await runs.withdraw(bob.client, control.id, "w", by="bob")
        await runs.unpause(idle.client, control.id)
        assert [each["by"] for each in (await pending(control))["consents"][0]["decided"]] == ["ann"]
        await control.deny("w")
        await control.ended()


async def test_break_glass_is_alone_with_a_reason_and_for_whom_the_rule_names(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk, cara: Desk
) -> None:
    policy.rule('by = ["ann", "bob"]\ncount = 2\noverride = ["cara"]')
    async with make_worker():
        plan = await begun(idle, cara)
        assert await refused(plan, cara) == "MAY_NOT_DECIDE", "without the override she is not among them"
        assert await refused(plan, cara, override=True) == "REASON_REQUIRED"
        assert await refused(plan, ann, override=True, comment="now") == "MAY_NOT_DECIDE"
        assert idle.ledger == []
        decision = await approve(plan, cara, override=True, comment="the shop is down")
        assert (decision.override, decision.missing) == (True, 0)
        view = await plan.ended()
    assert step(view, "w")["status"] == "completed"
    assert [each["text"] for each in view["log"] if each.get("code") == "OVERRIDDEN"] == [
        "step 'w' approved by cara (verified) alone, overriding those who must approve: the shop is down"
    ]
