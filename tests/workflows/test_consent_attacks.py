"""What does not get around those who must approve: each attack has no effect, and its twin has one.

The twin is the same thing done where the guard is off, or by those who may. An effect is a line of the step in the
ledger.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import Client

from plansurvive.client import decisions, runs
from plansurvive.client.decisions import Choice
from plansurvive.plans.editing.edits import SetField
from plansurvive.plans.errors import Refused
from plansurvive.plans.run import Options
from tests.kit.desks import Desk, Policy
from tests.kit.driving import Plans, Started, work
from tests.kit.waiting import until
from tests.workflows.conftest import MakeWorker
from tests.workflows.test_consents import approve, begun, cara, pending, policy, refused
from tests.workflows.test_people import ann, bob, page

__all__ = ["ann", "bob", "cara", "page", "policy"]

pytestmark = pytest.mark.uses("signing", "policy")

GATE = {"id": "gate", "tool": "create_directory", "args": {"path": "made"}, "requiresApproval": True}


@dataclass(frozen=True)
class Scene:
    """Who takes part: people with keys of their own, a page with its own, and a client that signs nothing."""

    plans: Plans
    policy: Policy
    client: Client
    ann: Desk
    bob: Desk
    cara: Desk
    page: Desk


async def says(plan: Started, desk: Desk, code: str = "", **more: Any) -> None:
    """Approve as somebody; refused with this code, if one is given."""
    if code:
        assert await refused(plan, desk, **more) == code
    else:
        await approve(plan, desk, **more)


async def an_obedient_agent_approves_as_ann(here: Scene, twin: bool) -> Started:
    """By her client's MCP server, by a signal, by an update that says it is verified: by all but her own hand."""
    here.policy.rule("" if twin else 'by = ["ann"]')
    plan = await begun(here.plans, here.bob)
    if not twin:
        claims = Choice(step_id="w", by="ann", verified=True, via="web")
        with pytest.raises(Refused, match=r"decide with a key of your own \(`plan keys person NAME`\)") as caught:
            await decisions.decide(here.client, plan.id, claims, approved=True)
        assert caught.value.code == "UNVERIFIED"
        await plan.approve("w", by="ann", verified=True, remember=True)
        await plan.until_logged("refused", "UNVERIFIED")
    await says(plan, here.ann, "" if twin else "UNVERIFIED", via="mcp")
    return plan


async def one_person_with_two_logins(here: Scene, twin: bool) -> Started:
    """Twice the same name of [people]; the twin: a login of each of two people."""
    here.policy.rule("count = 2", bob='{logins = ["bob@example.org", "robert@example.org"]}')
    plan = await begun(here.plans, here.cara)
    await says(plan, here.page, by="bob@example.org", via="web", verified=True)
    if twin:
        await says(plan, here.ann)
    else:
        await says(plan, here.page, "ALREADY_DECIDED", by="Robert@example.org", via="web", verified=True)
    return plan


async def an_unsigned_start(here: Scene, twin: bool) -> Started:
    """Ann starts under another name, and approves what she has written herself."""
    here.policy.rule("" if twin else "not_author = true")
    started = await runs.start(
        here.client,
        {"steps": [work("w")]},
        options=Options(workspace=str(here.plans.workspace), by="eve"),
        queue=here.plans.queue,
    )
    plan = Started(here.plans.client, started.workflow_id)
    await plan.until_asked("w")
    assert (await approve(plan, here.ann)).missing == (0 if twin else 1)
    return plan


async def an_author_who_decides_before_the_policy_asks(here: Scene, twin: bool) -> Started:
    """Ann's plan asks by itself, so that she is asked as everybody is, before a worker has compared it with rules."""
    here.policy.rule("not_author = true")
    plan = await begun(here.plans, here.ann, requiresApproval=True)
    await says(plan, here.bob if twin else here.ann)
    if not twin:
        await plan.until(lambda view: any("consents" in each for each in view["pending"]), "the rule asks")
        await says(plan, here.ann, "MAY_NOT_DECIDE")
    return plan


async def her_delegate_and_herself(here: Scene, twin: bool) -> Started:
    """Cara decides for ann, beside ann; the twin: for bob."""
    whose = "bob" if twin else "ann"
    later = datetime.now(UTC) + timedelta(days=1)
    given = f'[[delegation]]\nfrom = "{whose}"\nto = "cara"\nuntil = {later:%Y-%m-%dT%H:%M:%SZ}\n'
    here.policy.rule('by = ["ann", "bob"]\ncount = 2', given)
    plan = await begun(here.plans, here.bob)
    await says(plan, here.ann)
    await says(plan, here.cara, "" if twin else "MAY_NOT_DECIDE")
    return plan


async def a_forwarded_link(here: Scene, twin: bool) -> Started:
    """Opened by somebody who has not logged in; the twin: by bob, who has."""
    here.policy.rule('by = ["bob"]')
    plan = await begun(here.plans, here.cara)
    name = "bob@example.org"
    await says(plan, here.page, "" if twin else "UNVERIFIED", by=name, via="link", verified=twin)
    return plan


async def an_old_consent(here: Scene, twin: bool) -> Started:
    """Given before the step asks, and used when it counts no more."""
    here.policy.rule('by = ["ann"]' if twin else 'by = ["ann"]\nexpires = "1s"')
    options = Options(workspace=str(here.plans.workspace), by="bob")
    steps = {"steps": [GATE, work("w", "gate")]}
    started = await runs.start(here.bob.client, steps, options=options, queue=here.plans.queue)
    plan = Started(here.plans.client, started.workflow_id)
    await plan.until_asked("gate")
    given = await approve(plan, here.ann)

    async def is_old() -> bool:
        return (datetime.now(UTC) - given.time).total_seconds() > 1.1

    await until(is_old, "the consent counts no more")
    await plan.approve("gate")
    if not twin:
        assert "APPROVAL_EXPIRED" in str((await pending(plan))["reasons"])
    return plan


async def an_edit_between_two_decisions(here: Scene, twin: bool) -> Started:
    """Each has approved another call; the twin: both the same one."""
    here.policy.rule("count = 2")
    plan = await begun(here.plans, here.cara)
    await says(plan, here.ann)
    if not twin:
        await says(plan, here.bob, "INVALID_ARGS", args={"name": "other"})
        edit = SetField(op="set", step_id="w", path="args.name", value="changed")
        await runs.edit(here.cara.client, plan.id, [edit], by="cara")
    digest = (await pending(plan))["digest"]
    assert (await approve(plan, here.bob, digest=digest)).missing == (0 if twin else 1), "ann has not seen this call"
    return plan


async def a_resumed_plan(here: Scene, twin: bool) -> Started:
    """An approval of the run before, and one of who has resumed it; the twin: both of people who have not, and anew."""
    here.policy.rule("count = 2\nnot_author = true")
    first = await begun(here.plans, here.cara)
    await says(first, here.ann)
    await runs.interrupt(here.plans.client, first.id)
    await first.ended()
    by = here.cara if twin else here.bob
    again = await runs.resume(by.client, first.id, by.own.name)
    plan = Started(here.plans.client, again.workflow_id)
    assert (await pending(plan))["consents"][0]["decided"] == []
    await says(plan, here.cara, "MAY_NOT_DECIDE")
    await says(plan, here.bob, "" if twin else "MAY_NOT_DECIDE")
    if twin:
        await says(plan, here.ann)
    return plan


async def a_client_with_another_policy(here: Scene, twin: bool) -> Started:
    """Ann's own file allows all, and she waives what she can; the worker's file asks."""
    mine = here.ann.settings.state_dir / "policy.toml"
    mine.write_text('[[rule]]\nname = "all"\ndecide = "allow"\n')
    mine.chmod(0o600)
    here.policy.rule("" if twin else 'by = ["bob"]', decide="allow" if twin else "ask")
    started = await runs.start(
        here.ann.client,
        {"steps": [work("w", requiresApproval=False)]},
        options=Options(workspace=str(here.plans.workspace), by="ann", approve_all=True),
        queue=here.plans.queue,
    )
    plan = Started(here.plans.client, started.workflow_id)
    if not twin:
        await plan.until_asked("w")
        await says(plan, here.ann, "MAY_NOT_DECIDE")
    return plan


async def a_file_that_others_may_write(here: Scene, twin: bool) -> Started:
    """Somebody opens the file and has it allow everything; the twin: the operator does."""
    here.policy.rule('by = ["bob"]')
    ended = await begun(here.plans, here.cara)
    await ended.deny("w")
    await ended.ended()
    here.policy.rule("", decide="allow", mode=0o600 if twin else 0o666)
    options = Options(workspace=str(here.plans.workspace), by="ann", approve_all=True)
    started = await runs.start(here.ann.client, {"steps": [work("w")]}, options=options, queue=here.plans.queue)
    plan = Started(here.plans.client, started.workflow_id)
    if not twin:
        assert "POLICY_UNREADABLE" in str((await pending(plan))["reasons"])
        await says(plan, here.ann, "MAY_NOT_DECIDE")
    return plan


ATTACKS: list[Callable[[Scene, bool], Awaitable[Started]]] = [
    an_obedient_agent_approves_as_ann, one_person_with_two_logins, an_unsigned_start,
    an_author_who_decides_before_the_policy_asks, her_delegate_and_herself,
    a_forwarded_link, an_old_consent, an_edit_between_two_decisions, a_resumed_plan, a_client_with_another_policy,
    a_file_that_others_may_write,
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.__name__)
async def test_an_attack_has_no_effect_and_its_twin_has_one(
    attack: Callable[[Scene, bool], Awaitable[Started]], idle: Plans, make_worker: MakeWorker, policy: Policy,
    temporal_client: Client, ann: Desk, bob: Desk, cara: Desk, page: Desk,
) -> None:  # fmt: skip
    policy.rule("")
    scene = Scene(idle, policy, temporal_client, ann, bob, cara, page)
    async with make_worker():
        plan = await attack(scene, False)
        await plan.until_asked("w")
        assert idle.ledger == []
        await plan.deny("w")
        await plan.ended()
        twin = await attack(scene, True)
        assert (await twin.ended())["status"] == "completed"
        assert {row[1] for row in idle.ledger} == {"w"}
