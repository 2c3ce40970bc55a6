"""Agents start, follow, edit and take back plans over MCP, and cannot loosen what a person decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.apps.mcp.common.host import Host
from plansurvive.apps.mcp.common.where import where
from plansurvive.client import runs
from plansurvive.client.page.served_page import recorded
from plansurvive.client.requests.connected import Connected
from plansurvive.client.rpc import ask
from plansurvive.plans.run import Options
from tests.apps.mcp.agents import Agent, agent_of, called, refused
from tests.kit.driving import terminated
from tests.kit.waiting import until

PAST = {"id": "past", "tool": "sleep", "args": {"seconds": 0}}
REMOVE = {"tool": "delete_file", "requiresApproval": False, "args": {"path": "old.txt"}}


def loose(seconds: float) -> dict[str, Any]:
    """Everything that a plan can say so that nobody is asked; what is asked all the same, time is to approve."""
    rule = {"timeout": seconds, "onTimeout": "approve"}
    return {
        "owns": ["**"],
        "defaults": {"approval": rule},
        "steps": [
            {"id": "delete", **REMOVE},
            {"id": "replace", "tool": "write_file", "args": {"path": "mine.txt", "content": "theirs"}},
            {"id": "child", "tool": "plan", "args": {"steps": [{"id": "inner", **REMOVE, "approval": rule}]}},
        ],
    }


async def asked_of(agent: Agent, plan: str, *steps: str) -> dict[str, dict[str, Any]]:
    """The pending decisions by step, once all of these are pending."""

    async def asked() -> dict[str, dict[str, Any]] | None:
        found = {each["stepId"]: each for each in (await called(agent, "plan_pending", planId=plan))["pending"]}
        return found if set(steps) <= found.keys() else None

    found: dict[str, dict[str, Any]] = await until(asked, f"{', '.join(steps)} are asked for")
    return found


async def test_what_an_agent_starts_waives_nothing(
    host: Host, worker: Worker, workspace: Path, temporal_client: Client
) -> None:
    (workspace / "old.txt").write_text("old")
    (workspace / "mine.txt").write_text("mine")
    async with agent_of(host) as agent:
        started = await called(agent, "plan_start", plan=loose(3_600) | {"timeout": 600.0}, timeout=7_200)
        assert any("delete" in each for each in started["warnings"])
        assert any("owns" in each for each in started["warnings"])
        found = await asked_of(agent, started["planId"], "delete", "replace", "inner")
        assert "does not count" in " ".join(found["delete"]["reasons"])
        assert (await called(agent, "plan_show", planId=started["planId"]))["decide"]["command"].startswith("plan pend")
    assert (await ask(temporal_client, started["planId"], "state"))["options"]["timeout"] == 600.0
    assert (workspace / "old.txt").exists()
    assert (workspace / "mine.txt").read_text() == "mine"
    await terminated(temporal_client, f"plan-{started['planId']}")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_time_approves_nothing_that_an_agent_starts(host: Host, worker: Worker, workspace: Path) -> None:
    (workspace / "old.txt").write_text("old")
    (workspace / "mine.txt").write_text("mine")
    async with agent_of(host) as agent:
        plan = (await called(agent, "plan_start", plan=loose(1)))["planId"]

        async def ended() -> dict[str, Any] | None:
            shown = await called(agent, "plan_show", planId=plan, wait=20)
            return shown if shown["hasEnded"] else None

        shown = await until(ended, "the time of all three is over")
    assert [each["status"] for each in shown["steps"]] == ["skipped", "skipped", "failed"]
    assert (workspace / "old.txt").read_text() == "old"
    assert (workspace / "mine.txt").read_text() == "mine"


async def test_a_draft_in_review_says_how_a_person_begins_it_and_an_ended_plan_how_to_see_values(
    host: Host, worker: Worker
) -> None:
    async with agent_of(host) as agent:
        step = {"id": "nap", "tool": "sleep", "args": {"seconds": 0}}
        plan = (await called(agent, "plan_start", plan={"steps": [step]}, review=True, wait=20))["planId"]
        for tool in ("plan_show", "plan_pending"):
            answer = await agent.call_tool(tool, {"planId": plan})
            assert answer.structured_content is not None
            assert answer.structured_content["decide"]["command"] == f"plan review {plan}"
            assert "in review" in getattr(answer.content[0], "text", "")
        host.may_approve = True
    async with agent_of(host) as agent:
        await called(agent, "plan_begin", planId=plan)
        ended = await agent.call_tool("plan_show", {"planId": plan, "wait": 20})
    assert "plan_show with its stepId" in getattr(ended.content[0], "text", "")


async def test_each_error_of_an_ended_plan_is_said_once_with_the_item_that_it_is_of(host: Host, worker: Worker) -> None:
    read = {"id": "read", "tool": "read_json", "args": {"path": "{{item}}"}, "retry": {"attempts": 1}}
    loop = {"id": "each", "forEach": ["here.json", "gone.json"], "steps": [read]}
    async with agent_of(host) as agent:
        plan = (await called(agent, "plan_start", plan={"steps": [loop]}))["planId"]
        await until(lambda: ended(agent, plan), "it has ended")
        answer = await agent.call_tool("plan_show", {"planId": plan})
    text = getattr(answer.content[0], "text", "")
    assert answer.structured_content is not None
    for name in ("here.json", "gone.json"):
        assert text.count(f"'{name}' does not exist") == 1, text
    assert [each["stepId"] for each in answer.structured_content["outcome"]["failed"]][-1] == "each"


async def ended(agent: Agent, plan: str) -> bool:
    return bool((await called(agent, "plan_show", planId=plan))["hasEnded"])


async def test_the_control_a_person_who_starts_the_same_is_not_asked(
    temporal_client: Client, worker: Worker, workspace: Path, queue: str
) -> None:
    (workspace / "old.txt").write_text("old")
    (workspace / "mine.txt").write_text("mine")
    options = Options(workspace=str(workspace))
    plan = loose(1)
    plan["steps"] = plan["steps"][:2]
    started = await runs.start(temporal_client, plan, options=options, queue=queue)
    assert (await runs.wait(temporal_client, started.plan_id)).is_completed
    assert (workspace / "mine.txt").read_text() == "theirs"


async def test_what_an_agent_repeats_of_a_persons_plan_waives_nothing(
    host: Host, temporal_client: Client, worker: Worker, workspace: Path, queue: str
) -> None:
    (workspace / "old.txt").write_text("old")
    plan = {"steps": [{"id": "delete", **REMOVE}]}
    options = Options(workspace=str(workspace), approve_all=True)
    mine = await runs.start(temporal_client, plan, options=options, queue=queue)
    await runs.wait(temporal_client, mine.plan_id)
    (workspace / "old.txt").write_text("again")
    async with agent_of(host) as agent:
        again = await called(agent, "plan_rerun", planId=mine.plan_id, only="delete")
        await asked_of(agent, again["planId"], "delete")
        await called(agent, "plan_cancel", planId=again["planId"])
        await called(agent, "plan_show", planId=again["planId"], wait=20)
        code, text = await refused(agent, "plan_undo", planId=mine.plan_id)
        assert (code, again["planId"] in text) == ("ALREADY_RESUMED", True)
        undone = await called(agent, "plan_undo", planId=again["planId"])
        assert undone["dryRun"]
    assert (workspace / "old.txt").read_text() == "again"


async def test_an_agent_reruns_several_steps_at_once(
    host: Host, temporal_client: Client, worker: Worker, workspace: Path, queue: str
) -> None:
    steps = [{"id": name, "tool": "find_files", "args": {"pattern": "*.txt"}} for name in "abc"]
    options = Options(workspace=str(workspace))
    mine = await runs.start(temporal_client, {"steps": steps}, options=options, queue=queue)
    await runs.wait(temporal_client, mine.plan_id)
    async with agent_of(host) as agent:
        code, _ = await refused(agent, "plan_rerun", planId=mine.plan_id, startAt=["a", "b"], args={"pattern": "*"})
        assert code == "BAD_USAGE"
        again = await called(agent, "plan_rerun", planId=mine.plan_id, startAt=["a", "b"], wait=20)
        one = await called(agent, "plan_rerun", planId=mine.plan_id, startAt="a", args={"pattern": "*"}, wait=20)
    for name, asked in ((again["planId"], "from 'a' and 'b'"), (one["planId"], "from 'a'")):
        assert asked in (await runs.show(temporal_client, name)).log[0].text


async def test_an_agent_edits_plans_of_agents_only_and_nothing_that_is_for_people(
    host: Host, temporal_client: Client, worker: Worker, workspace: Path, queue: str
) -> None:
    steps = [{"id": "a", "tool": "delete_file", "args": {"path": "a.txt"}}]
    mine = await runs.start(temporal_client, {"steps": steps}, options=Options(workspace=str(workspace)), queue=queue)
    harmless = {"op": "set", "stepId": "a", "path": "args.path", "value": "b.txt"}
    async with agent_of(host) as agent:
        code, text = await refused(agent, "plan_edit", planId=mine.plan_id, edits=[harmless])
        assert (code, "plan edit" in text) == ("FORBIDDEN", True)
        own = (await called(agent, "plan_start", plan={"steps": steps}))["planId"]
        before = (await asked_of(agent, own, "a"))["a"]["digest"]
        for edit in (
            {"op": "set", "stepId": "a", "path": "requiresApproval", "value": False},
            {"op": "set", "stepId": "a", "path": "approval", "value": {"timeout": 1, "onTimeout": "approve"}},
            {"op": "set", "stepId": "a", "path": "queue", "value": "others"},
            {"op": "set", "path": "budget", "value": {"calls": 1_000}},
            {"op": "set", "path": "defaults.approval", "value": {"timeout": 1, "onTimeout": "approve"}},
            {"op": "add", "step": {**steps[0], "id": "c", "requiresApproval": False}},
            {"op": "add", "step": {"id": "c", "steps": [{**steps[0], "requiresApproval": False}]}},
        ):
            assert (await refused(agent, "plan_edit", planId=own, edits=[edit]))[0] == "FORBIDDEN", edit
        wrong = {"op": "set", "stepId": "a", "path": "dependsOn", "value": ["no"]}
        code, text = await refused(agent, "plan_edit", planId=own, edits=[wrong])
        assert (code, text.splitlines()[0]) == (
            "INVALID_PLAN",
            "Nothing was changed: the edited plan would have 1 problem:",
        )
        edited = await called(agent, "plan_edit", planId=own, edits=[harmless], expectVersion=1)
        assert edited["version"] == 2
        assert (await asked_of(agent, own, "a"))["a"]["digest"] != before
        assert (await refused(agent, "plan_edit", planId=own, edits=[harmless], expectVersion=1))[0] == "STALE_VERSION"
    await terminated(temporal_client, mine.workflow_id)
    await terminated(temporal_client, f"plan-{own}")


async def test_an_agent_that_may_decides_about_the_call_it_read_and_the_plan_says_how(
    host: Host, temporal_client: Client, worker: Worker, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("a")
    host.may_approve = True
    steps = [{"id": "a", "tool": "delete_file", "args": {"path": "a.txt"}}]
    async with agent_of(host) as agent:
        plan = (await called(agent, "plan_start", plan={"steps": steps}))["planId"]
        digest = (await asked_of(agent, plan, "a"))["a"]["digest"]
        code, _ = await refused(agent, "plan_approve", planId=plan, stepId="a", digest="0" * 64)
        assert code == "STALE_DIGEST"
        await called(agent, "plan_approve", planId=plan, stepId="a", digest=digest)
        shown = await called(agent, "plan_show", planId=plan, wait=20)
        assert shown["status"] == "completed"
    decision = (await runs.show(temporal_client, plan)).step("a").decision  # type: ignore[union-attr]
    assert decision is not None
    assert (decision.by, decision.via) == ("ann", "mcp")


def everything(workspace: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in workspace.rglob("*") if path.is_file()}


async def test_tools_and_resources_that_only_read_leave_no_event_and_no_file(
    host: Host, temporal_client: Client, worker: Worker, workspace: Path
) -> None:
    shell = {"id": "say", "tool": "run_command", "args": {"command": "echo grüße; echo odd >&2"}}
    steps = [{"id": "w", "tool": "write_file", "args": {"path": "n.txt", "content": "x\n"}}, shell]
    async with agent_of(host) as agent:
        plan = (await called(agent, "plan_start", plan={"title": "Say", "steps": steps}))["planId"]
        digest = (await asked_of(agent, plan, "say"))["say"]["digest"]
        await runs.approve(temporal_client, plan, runs.Choice(step_id="say", digest=digest, by="ann"))
        assert (await called(agent, "plan_show", planId=plan, wait=30))["hasEnded"]
        handle = temporal_client.get_workflow_handle(f"plan-{plan}")
        length, before = (await handle.describe()).history_length, everything(workspace)

        shown = await called(agent, "plan_show", planId=plan, stepId="say")
        assert shown["step"]["result"]["value"]["stdout"] == "grüße\n"
        assert shown["outcome"]["filesWritten"] == ["n.txt"]
        assert "did you mean 'run_command'?" in (await refused(agent, "plan_tools", name="bash"))[1]
        assert "did you mean 'planId'?" in (await refused(agent, "plan_show", plan_id=plan))[1]
        code, text = await refused(agent, "plan_show", planId=plan, stepId="sya")
        assert (code, "the plan has no step 'sya'; did you mean 'say'?" in text) == ("UNKNOWN_STEP", True)
        code, text = await refused(agent, "plan_show", planId=f"{plan}x")
        assert (code, f"did you mean '{plan}'?" in text) == ("PLAN_NOT_FOUND", True)
        await called(agent, "plan_list")
        assert (await called(agent, "plan_pending", planId=plan))["pending"] == []
        first = await called(agent, "plan_events", planId=plan, limit=2)
        rest = await called(agent, "plan_events", planId=plan, since=first["next"])
        assert [len(first["events"]), rest["hasEnded"]] == [2, True]
        assert rest["events"][0]["seq"] > first["next"]
        logs = await called(agent, "plan_logs", planId=plan)
        assert {each["stream"]: each["text"] for each in logs["output"]} == {"stdout": "grüße\n", "stderr": "odd\n"}
        assert (await called(agent, "plan_logs", planId=plan, cursor=logs["cursor"]))["output"] == []
        assert (await refused(agent, "plan_logs", planId=plan, cursor="{"))[0] == "BAD_CURSOR"
        (call,) = (await called(agent, "plan_files", planId=plan))["calls"]
        assert "+x" in call["changes"][0]["diff"]
        assert (await called(agent, "plan_undo", planId=plan))["restored"] == ["n.txt"]
        for name in ("", "/graph", "/summary", "/file", "/files"):
            (content,) = (await agent.read_resource(f"plan://{plan}{name}")).contents
            assert len(getattr(content, "text", "")) > 20, name
        assert ((await handle.describe()).history_length, everything(workspace)) == (length, before)

        assert (await called(agent, "plan_undo", planId=plan, dryRun=False))["isWhole"]
    assert not (workspace / "n.txt").exists()


async def test_where_to_decide_names_the_page_without_the_secret_of_its_link(host: Host, worker: Worker) -> None:
    here = await host.connected()
    assert isinstance(here, Connected)
    with recorded(host.settings, "http://127.0.0.1:7243/?key=the-secret"):
        place = where(here, "p")
    assert place.page == "http://127.0.0.1:7243/plans/p"
    assert "the-secret" not in place.text + place.model_dump_json()


async def test_errors_are_the_codes_and_sentences_of_the_command_line(host: Host, worker: Worker) -> None:
    async with agent_of(host) as agent:
        code, text = await refused(agent, "plan_show", planId="no-such-plan")
        assert (code, "; plan_list shows the plans" in text) == ("PLAN_NOT_FOUND", True)
        assert (await refused(agent, "plan_show", planId="a b\n"))[0] == "BAD_PLAN_ID"
        code, text = await refused(agent, "plan_start", plan={"steps": [{"id": "a", "tool": "read_file"}]})
        assert (code, "INVALID_ARGS" in text) == ("INVALID_PLAN", True)
        with pytest.raises(Exception, match="PLAN_NOT_FOUND"):
            await agent.read_resource("plan://no-such-plan")
