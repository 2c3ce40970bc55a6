"""A person's own key proves who has sent something, in a worker that asks for signatures and in one that does not.

Each attack has its control: sent by its owner, the same counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from plansurvive.client import decisions, runs
from plansurvive.client.decisions import Choice
from plansurvive.plans.editing.edits import SetField
from plansurvive.plans.run import Options
from plansurvive.plans.signature import FIELD
from plansurvive.plans.views.models import PlanView
from plansurvive.runtime.settings import Settings
from tests.kit.desks import Desk, signing
from tests.kit.driving import Plans, Started
from tests.workflows.conftest import MakeWorker

pytestmark = pytest.mark.uses("signing", "policy")

GATE = {"id": "gate", "tool": "create_directory", "args": {"path": "made"}, "requiresApproval": True}


@pytest.fixture
def ann(temporal_client: Client, settings: Settings, tmp_path: Path) -> Desk:
    return Desk(temporal_client, settings, tmp_path, "ann")


@pytest.fixture
def bob(temporal_client: Client, settings: Settings, tmp_path: Path) -> Desk:
    return Desk(temporal_client, settings, tmp_path, "bob")


@pytest.fixture
def page(temporal_client: Client, settings: Settings, tmp_path: Path) -> Desk:
    return Desk(temporal_client, settings, tmp_path, "team", "page")


@pytest.fixture
def policy(settings: Settings, ann: Desk, bob: Desk, page: Desk) -> None:
    """The worker's policy lists all three."""
    text = f"[people]\n{ann.own.line}\n{bob.own.line}\n[pages]\n{page.own.line}\n"
    (settings.state_dir / "policy.toml").write_text(text)


async def waiting(plans: Plans, client: Client, by: str = "", **options: Any) -> Started:
    started = await runs.start(
        client, {"steps": [GATE]}, options=Options(workspace=str(plans.workspace), by=by, **options), queue=plans.queue
    )
    plan = Started(plans.client, started.workflow_id)
    await plan.until_asked("gate")
    return plan


async def state_of(plan: Started) -> dict[str, Any]:
    found: dict[str, Any] = await plan.handle.query("state")
    return found


async def refused(plan: Started, message: dict[str, Any]) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await plan.handle.execute_update("decide", message)
    assert isinstance(caught.value.cause, ApplicationError)
    return str(caught.value.cause.type)


@pytest.mark.parametrize("must", ["open", "signed"])
async def test_a_persons_own_key_proves_who_decided(
    idle: Plans, make_worker: MakeWorker, policy: None, ann: Desk, settings: Settings, must: str
) -> None:
    async with make_worker(decisions=must):
        plan = await waiting(idle, ann.client, "ann")
        decision = await ann.decide(plan)
        assert (decision.by, decision.signed, decision.verified) == ("ann", "ann", True)
        assert (await state_of(plan))["starter"] == "ann"
        assert (await plan.ended())["status"] == "completed"


async def test_without_the_key_a_name_proves_nothing(
    idle: Plans, make_worker: MakeWorker, policy: None, temporal_client: Client
) -> None:
    async with make_worker():
        plan = await waiting(idle, temporal_client, "ann")
        decision = await decisions.decide(temporal_client, plan.id, Choice(step_id="gate", by="ann"), approved=True)
        assert (decision.by, decision.signed, decision.verified) == ("ann", "", False)
        await plan.ended()
        assert (await state_of(plan)).get("starter", "") == ""


async def test_the_key_of_the_directory_proves_no_person(
    idle: Plans, make_worker: MakeWorker, policy: None, temporal_client: Client, settings: Settings
) -> None:
    machine = signing(temporal_client, settings.with_flags(decisions="signed"))
    async with make_worker(decisions="signed"):
        plan = await waiting(idle, machine, "ann")
        decision = await decisions.decide(machine, plan.id, Choice(step_id="gate", by="ann"), approved=True)
        assert (decision.signed, decision.verified) == ("", False)
        await plan.ended()
        assert (await state_of(plan)).get("starter", "") == ""


async def test_what_claims_anothers_key_is_refused(
    idle: Plans, make_worker: MakeWorker, policy: None, ann: Desk, bob: Desk, temporal_client: Client
) -> None:
    sent = list[Any]()

    async with make_worker():
        plan = await waiting(idle, temporal_client)
        other = await waiting(idle, temporal_client)
        made = await ann.decide(other)
        assert made.signed == "ann"
        history = await other.handle.fetch_history()
        for event in history.events:
            accepted = event.workflow_execution_update_accepted_event_attributes
            if accepted.accepted_request.input.name == "decide":
                sent += await temporal_client.data_converter.decode(accepted.accepted_request.input.args.payloads)
        [message] = sent
        assert message[FIELD]["by"] == "ann"
        assert await refused(plan, message) == "BAD_SIGNATURE", "it was made for another plan"
        unnamed = {**message[FIELD], "by": "cara"}
        assert await refused(plan, {**message, FIELD: unnamed}) == "UNKNOWN_SIGNER"
        assert await refused(plan, {**message, "by": "bob"}) == "UNKNOWN_SIGNER", "its author must be who signs it"
        forged = {**message, "by": "bob", FIELD: {**message[FIELD], "by": "bob"}}
        assert await refused(plan, forged) == "BAD_SIGNATURE"
        assert (await bob.decide(plan)).signed == "bob"


async def test_a_signature_proves_nothing_to_a_worker_that_knows_no_keys(
    idle: Plans, make_worker: MakeWorker, ann: Desk
) -> None:
    async with make_worker():
        plan = await waiting(idle, ann.client, "ann")
        decision = await ann.decide(plan)
        assert (decision.by, decision.signed, decision.verified) == ("ann", "", False)
        assert (await plan.ended())["status"] == "completed"


async def test_a_page_vouches_for_logins_and_for_nobody_else(
    idle: Plans, make_worker: MakeWorker, policy: None, page: Desk, ann: Desk, temporal_client: Client
) -> None:
    async with make_worker():
        for verified in (True, False):
            plan = await waiting(idle, temporal_client)
            decision = await page.decide(plan, by="ann@example.org", via="web", verified=verified)
            assert (decision.signed, decision.verified) == ("page:team", verified)
        plan = await waiting(idle, temporal_client)
        assert (await page.decide(plan)).signed == "", "what no visitor has sent is not the page's to sign"
        plan = await waiting(idle, temporal_client)
        assert (await ann.decide(plan, via="mcp")).signed == "", "an agent does not speak for ann"


async def test_an_edit_names_who_has_signed_it(
    idle: Plans, make_worker: MakeWorker, policy: None, ann: Desk, temporal_client: Client
) -> None:
    async with make_worker():
        plan = await waiting(idle, temporal_client)
        for client, signer in ((ann.client, "ann"), (temporal_client, "")):
            edit = SetField(op="set", step_id="gate", path="description", value=f"by {signer}")
            await runs.edit(client, plan.id, [edit], by="ann")
            last = (await state_of(plan))["revisions"][-1]
            assert (last.get("signed", ""), last.get("verified", False)) == (signer, bool(signer))
            change = PlanView.model_validate(await plan.view()).changes[-1]
            assert (change.signed, change.verified) == (signer, bool(signer))
        assert (await ann.decide(plan)).signed == "ann"
        view = PlanView.model_validate(await plan.ended())
        decision = next(each.decision for each in view.steps if each.id == "gate")
        assert decision is not None
        assert (decision.signed, decision.verified) == ("ann", True)


async def test_a_page_vouches_for_who_edits_over_its_mcp_with_a_login_and_lets_no_agent_decide(
    idle: Plans, make_worker: MakeWorker, policy: None, page: Desk, temporal_client: Client
) -> None:
    async with make_worker():
        plan = await waiting(idle, temporal_client)
        for verified, signer in ((True, "page:team"), (False, "")):
            edit = SetField(op="set", step_id="gate", path="description", value=f"by {signer}")
            await runs.edit(page.client, plan.id, [edit], by="ann@example.org", via="mcp", verified=verified)
            last = (await state_of(plan))["revisions"][-1]
            assert (last.get("signed", ""), last.get("verified", False)) == (signer, verified)
        decision = await page.decide(plan, by="ann@example.org", via="mcp", verified=True)
        assert (decision.signed, decision.verified) == ("", False)


async def test_what_people_sign_is_for_one_run_of_the_plan(
    idle: Plans, make_worker: MakeWorker, policy: None, temporal_client: Client
) -> None:
    async with make_worker():
        plan = await waiting(idle, temporal_client)
        nonce = (await state_of(plan))["parts"]["signing"]["nonce"]
        assert await (await plan.handle.describe()).memo_value("nonce", "") == nonce != ""
