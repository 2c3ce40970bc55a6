"""The policy of a worker in plans: what it allows, asks and denies, whatever a plan or whoever starts it waives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
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
        assert "needs approval by default" in str((await asked(plan, "c"))["reasons"])
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


CHILD = {"id": "c", "tool": "plan", "args": {"steps": [work("inner")]}}


@pytest.mark.crosses_runs
async def test_a_plan_as_a_step_is_judged_before_it_begins(idle: Plans, make_worker: MakeWorker, policy: Write) -> None:
    async with make_worker(policy=policy(rule("ask", "plan", name="plans of plans"))):
        plan = await idle.start([CHILD], {"approveAll": True})
        assert "rule 'plans of plans' of the policy asks" in str((await asked(plan, "c"))["reasons"])
        assert idle.ledger == []
        await plan.approve("c", by="ann")
        view = await plan.ended()
    assert view["status"] == "completed", view
    assert step(view, "c")["result"]["policy"]["rules"] == ["plans of plans"]


@pytest.mark.parametrize("tool", ["plan", "agent"])
async def test_a_child_that_the_policy_denies_never_begins(
    idle: Plans, make_worker: MakeWorker, policy: Write, tool: str
) -> None:
    of_tool = CHILD if tool == "plan" else {"id": "c", "tool": "agent", "args": {"objective": "Do it."}}
    async with make_worker(policy=policy(rule("deny", tool, name="never"))):
        plan = await idle.start([of_tool])
        view = await plan.ended()
    assert step(view, "c")["result"]["code"] == "POLICY_DENIED"
    started = "start_child_workflow_execution_initiated_event_attributes"
    assert not [each for each in await plan.events() if each.WhichOneof("attributes") == started]
    assert idle.ledger == []


async def test_an_agent_as_a_step_asks_and_is_not_begun_when_denied(
    idle: Plans, make_worker: MakeWorker, policy: Write
) -> None:
    async with make_worker(policy=policy(rule("ask", "agent"))):
        plan = await idle.start([{"id": "a", "tool": "agent", "args": {"objective": "Do it."}}])
        await plan.until_asked("a")
        await plan.deny("a")
        view = await plan.ended()
    assert (view["status"], step(view, "a")["result"]["code"]) == ("partial", "DENIED")


async def test_without_a_policy_no_child_is_judged(plans: Plans) -> None:
    plan = await plans.start([CHILD])
    assert (await plan.ended())["status"] == "completed"
    scheduled = [each.activity_task_scheduled_event_attributes for each in await plan.events()]
    assert "judge_call" not in {each.activity_type.name for each in scheduled}


async def test_a_judge_settles_an_ask_and_its_requests_count_for_the_plan(
    idle: Plans, make_worker: MakeWorker, policy: Write
) -> None:
    file = policy(rule("ask", "work", 'judge = "Work is fine."', "small work"))
    allow = {"reply": {"json": {"decide": "allow", "reason": "it is work"}}, "times": 0}
    with ScriptedLlm(Script.of([allow])) as llm:
        async with make_worker(policy=file, openai_base_url=llm.url, model="demo"):
            long = await idle.start([work("a"), work("b", "a"), work("c", "b")], budget={"calls": 2})
            view = await long.until_asked("c")
            await long.deny("c")
            await long.ended()
            plan = await idle.start([work("w", requiresApproval=True)])
            await plan.until_asked("w")
            await plan.deny("w")
            await plan.ended()
    said = step(view, "a")["result"]["policy"]
    assert said["reason"] == "allowed by the judge under rule 'small work': it is work"
    assert said["judged"][0]["decide"] == "allow"
    assert view["tokens"]["calls"] == 2
    assert step(view, "c")["status"] == "ready"
