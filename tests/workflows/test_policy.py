"""The policy of a worker in plans: what it allows, asks and denies, whatever a plan or whoever starts it waives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plansurvive.runtime.settings import SettingError
from tests.kit.driving import Plans, Started, step, work
from tests.workflows.conftest import MakeWorker

Write = Callable[..., Path]
COMMAND = {"id": "c", "tool": "run_command", "args": {"command": "echo hello"}}


def rule(decide: str, tool: str, more: str = "", name: str = "") -> str:
    return f'[[rule]]\nname = "{name or decide}"\ndecide = "{decide}"\ntool = "{tool}"\n{more}\n'


@pytest.fixture
def policy(tmp_path: Path) -> Write:
    """Writes a policy.toml of rules."""

    def write(*rules: str) -> Path:
        path = tmp_path / "policy.toml"
        new = path.with_suffix(".new")
        new.write_text("\n".join(rules))
        new.chmod(0o600)
        new.replace(path)
        return path

    return write


async def asked(plan: Started, step_id: str) -> dict[str, Any]:
    """What a person is asked."""
    view = await plan.until_asked(step_id)
    return next(each for each in view["pending"] if each["stepId"] == step_id)


async def test_an_allow_needs_no_approval_and_its_result_names_rule_and_file(
    idle: Plans, make_worker: MakeWorker, policy: Write
) -> None:
    file = policy(rule("allow", "run_command", 'command = ["echo *"]', "harmless"))
    async with make_worker(policy=file):
        view = await idle.run([COMMAND])
    assert view["status"] == "completed", view
    said = step(view, "c")["result"]["policy"]
    assert (said["decide"], said["rules"], len(said["hash"])) == ("allow", ["harmless"], 64)


async def test_what_no_rule_fits_is_as_without_a_policy(idle: Plans, make_worker: MakeWorker, policy: Write) -> None:
    file = policy(rule("allow", "run_command", 'command = ["ls *"]'))
    async with make_worker(policy=file):
        plan = await idle.start([COMMAND, work("w")])
        assert "needs a person's approval" in str((await asked(plan, "c"))["reasons"])
        await plan.approve("c")
        assert (await plan.ended())["status"] == "completed"
        waived = await idle.run([{**COMMAND, "requiresApproval": False}])
        assert waived["status"] == "completed"
        assert (await idle.run([COMMAND], {"approveAll": True}))["status"] == "completed"


async def test_a_request_that_tells_of_content_still_asks(idle: Plans, make_worker: MakeWorker, policy: Write) -> None:
    file = policy(rule("allow", "run_command"))
    get = {"id": "g", "tool": "http_request", "args": {"url": "https://example.org/{{w}}"}, "dependsOn": ["w"]}
    async with make_worker(policy=file):
        plan = await idle.start([work("w"), get])
        await plan.until_asked("g")
        await plan.deny("g")
        await plan.ended()


@pytest.mark.crosses_runs
@pytest.mark.parametrize(
    ("more", "options"),
    [({}, {}), ({"requiresApproval": False}, {}), ({}, {"approveAll": True})],
    ids=["plain", "requiresApproval: false", "--yes"],
)
async def test_an_ask_is_not_waived(
    idle: Plans, make_worker: MakeWorker, policy: Write, more: dict[str, Any], options: dict[str, Any]
) -> None:
    async with make_worker(policy=policy(rule("ask", "work", name="careful"))):
        plan = await idle.start([work("w", **more)], options)
        assert "rule 'careful' of the policy asks" in str((await asked(plan, "w"))["reasons"])
        assert idle.ledger == []
        await plan.approve("w", by="ann")
        view = await plan.ended()
    assert view["status"] == "completed"
    assert step(view, "w")["result"]["policy"]["rules"] == ["careful"]


async def test_an_ask_outlives_remembered_approvals_and_time_limits(
    idle: Plans, make_worker: MakeWorker, policy: Write
) -> None:
    rushed = work("c", approval={"timeout": 0.05, "onTimeout": "approve"})
    async with make_worker(policy=policy(rule("ask", "work"))):
        plan = await idle.start([work("a"), work("b", "a"), rushed])
        await plan.until_asked("a")
        await plan.approve("a", remember=True)
        await plan.until_asked("b")
        await plan.until_status("c", "skipped")
        await plan.approve("b")
        view = await plan.ended()
    assert view["status"] == "partial"
    assert "does not count" in str(view["log"])
    assert sorted({row[1] for row in idle.ledger}) == ["a", "b"]


async def test_a_decision_before_the_policy_asks_is_a_persons_as_well(
    idle: Plans, make_worker: MakeWorker, policy: Write
) -> None:
    async with make_worker(policy=policy(rule("ask", "work"))):
        plan = await idle.start([work("w", requiresApproval=True)])
        await plan.until_asked("w")
        await plan.approve("w")
        assert (await plan.ended())["status"] == "completed"


async def test_a_plan_may_ask_where_the_policy_allows(idle: Plans, make_worker: MakeWorker, policy: Write) -> None:
    async with make_worker(policy=policy(rule("allow", "run_command"))):
        plan = await idle.start([{**COMMAND, "requiresApproval": True}])
        await plan.until_asked("c")
        await plan.deny("c")
        assert (await plan.ended())["status"] == "partial"


async def test_a_deny_is_final_whoever_approves_and_can_be_caught(
    idle: Plans, make_worker: MakeWorker, policy: Write
) -> None:
    caught = work("k", catch=[{"codes": ["POLICY_DENIED"], "steps": [work("instead")]}])
    async with make_worker(policy=policy(rule("deny", "work", 'args.name = "[wk]"', "never"))):
        plan = await idle.start([work("w", requiresApproval=True), caught])
        await plan.until_asked("w")
        await plan.approve("w")
        view = await plan.ended()
    assert step(view, "w")["result"]["code"] == "POLICY_DENIED"
    assert "rule 'never' of the policy denies it" in step(view, "w")["result"]["error"]
    assert step(view, "k")["status"] == "completed"
    assert {row[1] for row in idle.ledger} == {"instead"}


async def test_a_change_counts_from_the_next_call(idle: Plans, make_worker: MakeWorker, policy: Write) -> None:
    async with make_worker(policy=policy(rule("allow", "work"))):
        plan = await idle.start([work("a"), work("gate", "a", requiresApproval=True), work("b", "gate")])
        before = await plan.until_asked("gate")
        policy(rule("deny", "work", 'args.name = "b"'))
        await plan.approve("gate")
        view = await plan.ended()
    assert step(view, "b")["result"]["code"] == "POLICY_DENIED"
    assert len({step(before, "a")["result"]["policy"]["hash"]}) == 1


@pytest.mark.parametrize("how", ["broken", "writable", "gone"])
async def test_a_policy_that_cannot_be_read_any_more_asks_about_every_call(
    idle: Plans, make_worker: MakeWorker, policy: Write, how: str
) -> None:
    file = policy(rule("allow", "*"))
    async with make_worker(policy=file):
        assert (await idle.run([work("a")]))["status"] == "completed"
        if how == "broken":
            file.write_text("[[rule]]\n")
        elif how == "writable":
            file.chmod(0o666)
        else:
            file.unlink()
        plan = await idle.start([work("b", requiresApproval=False)], {"approveAll": True})
        assert "POLICY_UNREADABLE" in str((await asked(plan, "b"))["reasons"])
        policy(rule("allow", "work"))
        again = await idle.run([work("c")])
        await plan.approve("b")
        view = await plan.ended()
    assert (again["status"], view["status"]) == ("completed", "completed")


@pytest.mark.parametrize("text", ["[[rule]]\n", "x ="])
def test_a_worker_does_not_start_with_a_broken_policy(make_worker: MakeWorker, policy: Write, text: str) -> None:
    with pytest.raises(SettingError, match="PLANS_POLICY"):
        make_worker(policy=policy(text))


def test_a_worker_does_not_start_with_a_policy_that_others_may_write(make_worker: MakeWorker, policy: Write) -> None:
    file = policy(rule("allow", "work"))
    file.chmod(0o660)
    with pytest.raises(SettingError, match="others may change it"):
        make_worker(policy=file)


async def test_a_policy_that_comes_later_asks_and_denies(
    idle: Plans, make_worker: MakeWorker, tmp_path: Path, policy: Write
) -> None:
    file = policy(rule("allow", "other"))
    async with make_worker(policy=file):
        plan = await idle.start([work("gate", requiresApproval=True), work("a", "gate"), work("b", "gate")])
        await plan.until_asked("gate")
        policy(rule("ask", "work", 'args.name = "a"'), rule("deny", "work", 'args.name = "b"'))
        await plan.approve("gate")
        await plan.until_asked("a")
        await plan.approve("a")
        view = await plan.ended()
    assert [step(view, name)["status"] for name in ("a", "b")] == ["completed", "failed"]


async def test_without_a_policy_nothing_is_sent_or_kept_for_one(plans: Plans) -> None:
    plan = await plans.start([work("a")])
    view = await plan.ended()
    assert "policy" not in step(view, "a")["result"]
    scheduled = [each.activity_task_scheduled_event_attributes for each in await plan.events()]
    calls = [each for each in scheduled if each.activity_type.name == "work"]
    sent = [str(payload.data) for each in calls for payload in each.input.payloads]
    assert sent
    assert not any('"policy"' in each for each in sent)


async def test_an_edit_is_judged_as_it_is_made(idle: Plans, make_worker: MakeWorker, policy: Write) -> None:
    async with make_worker(
        policy=policy(rule("ask", "work", 'args.name = "a"'), rule("deny", "work", 'args.name = "x"'))
    ):
        plan = await idle.start([work("a")])
        await plan.until_asked("a")
        await plan.approve("a", args={"name": "x", "seconds": 0.0})
        view = await plan.ended()
    assert step(view, "a")["result"]["code"] == "POLICY_DENIED"
    assert idle.ledger == []
