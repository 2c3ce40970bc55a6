"""Plans as tasks, with an MCP client of the official SDK in memory, on a real server with a real worker."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY
from temporalio.client import Client as Temporal
from temporalio.worker import Worker

from plansurvive.apps.mcp.common.capability import TASKS
from plansurvive.apps.mcp.common.host import Host
from plansurvive.apps.mcp.server import build
from plansurvive.client import runs
from plansurvive.plans.editing.edits import SetField
from tests.apps.mcp.tasks.agent import accepted, agent, cancel, got, started, until_status, update

WRITE = {"id": "w", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}, "requiresApproval": True}
GATED = {"steps": [WRITE]}


def port(name: str) -> dict[str, Any]:
    """A step that asks for a number."""
    schema = {"type": "object", "properties": {"port": {"type": "integer", "maximum": 99}}, "required": ["port"]}
    return {"id": name, "tool": "ask", "args": {"question": "Which port?", "schema": schema}}


async def test_a_decision_asked_of_the_person_counts_as_theirs_and_says_how_it_was_made(
    host: Host, worker: Worker, temporal_client: Temporal
) -> None:
    async with agent(build(host)) as client:
        task = await started(client, plan=GATED)
        assert (task.status, task.ttl_ms) == ("working", None)
        waits = await until_status(client, task.task_id, "input_required")
        [(key, request)] = waits.input_requests.items()
        assert request["method"] == "elicitation/create"
        assert "a.txt" in request["params"]["message"]
        assert await update(client, task.task_id, {"unknown": {"ignored": True}}) is not None
        assert list((await got(client, task.task_id)).input_requests) == [key]  # the same request, the same key
        await update(client, task.task_id, {key: accepted(decision="approve", comment="fine")})
        ended = await until_status(client, task.task_id, "completed")
    assert ended.result is not None
    assert not ended.result["isError"]
    assert ended.result["structuredContent"]["planId"] == task.task_id
    decision = (await runs.show(temporal_client, task.task_id)).steps[0].decision
    assert decision is not None
    assert (decision.by, decision.via, decision.verified, decision.comment) == ("ann", "mcp", False, "fine")


async def test_questions_are_answered_one_by_one_and_a_wrong_answer_is_asked_again_with_the_reason(
    host: Host, worker: Worker
) -> None:
    async with agent(build(host)) as client:
        task = (await started(client, plan={"steps": [port("one"), port("two")]})).task_id
        asked = (await until_status(client, task, "input_required")).input_requests
        while len(asked) < 2:
            asked = (await got(client, task)).input_requests
        first, second = asked
        await update(client, task, {first: accepted(port=100)})
        again = (await got(client, task)).input_requests
        assert first not in again
        [third] = again.keys() - {second}
        assert "Not accepted" in again[third]["params"]["message"]
        await update(client, task, {first: accepted(port=1), third: accepted(port=80)})
        left = await until_status(client, task, "input_required")
        assert list(left.input_requests) == [second]
        await update(client, task, {second: accepted(port=81)})
        assert (await until_status(client, task, "completed")).result is not None


async def test_who_dismisses_a_form_is_not_asked_again_and_learns_where_to_decide(host: Host, worker: Worker) -> None:
    async with agent(build(host)) as client:
        task = (await started(client, plan=GATED)).task_id
        [key] = (await until_status(client, task, "input_required")).input_requests
        await update(client, task, {key: {"action": "decline"}})
        found = await got(client, task)
        assert (found.status, found.input_requests) == ("working", {})
        assert f"plan pending {task}" in found.status_message
        await cancel(client, task)
        await until_status(client, task, "cancelled")
        await cancel(client, task)  # once more is no error


async def test_only_a_client_that_declared_elicitation_is_asked_and_only_if_the_operator_allows_it(
    host: Host, worker: Worker
) -> None:
    host.deciding = "questions"
    async with agent(build(host)) as able, agent(build(host), elicitation_callback=None) as unable:
        task = (await started(able, plan={"steps": [WRITE, port("q")]})).task_id
        [key] = (await until_status(able, task, "input_required")).input_requests
        assert key.startswith("question-")  # the approval is decided elsewhere
        found = await got(unable, task)
        assert (found.status, found.input_requests) == ("working", {})
        await update(unable, task, {key: accepted(port=1)})  # it cannot have asked anybody
        assert list((await got(able, task)).input_requests) == [key]
        await cancel(able, task)


async def test_a_draft_is_begun_as_it_was_shown_and_no_other(
    host: Host, worker: Worker, temporal_client: Temporal
) -> None:
    async with agent(build(host)) as client:
        task = (await started(client, plan={"steps": [{**WRITE, "requiresApproval": None}]}, review=True)).task_id
        [old] = (await until_status(client, task, "input_required")).input_requests
        edits = [SetField(op="set", step_id="w", path="args.path", value="evil.txt")]
        await runs.edit(temporal_client, task, edits, by="agent")
        await update(client, task, {old: accepted(decision="begin")})
        [new] = (await until_status(client, task, "input_required")).input_requests
        assert new != old
        assert (await runs.brief(temporal_client, task)).status == "review"
        await update(client, task, {new: accepted(decision="begin")})
        [call] = (await until_status(client, task, "input_required", "completed")).input_requests or [""]
        if call:  # writing asks for approval by itself
            await update(client, task, {call: accepted(decision="deny")})
        await until_status(client, task, "completed")


async def test_an_approval_of_a_call_that_changed_since_is_ignored(
    host: Host, worker: Worker, temporal_client: Temporal
) -> None:
    async with agent(build(host)) as client:
        task = (await started(client, plan=GATED)).task_id
        [old] = (await until_status(client, task, "input_required")).input_requests
        await runs.edit(temporal_client, task, [SetField(op="set", step_id="w", path="args.path", value="evil.txt")])
        await update(client, task, {old: accepted(decision="approve")})
        [(new, request)] = (await until_status(client, task, "input_required")).input_requests.items()
        assert new != old
        assert "evil.txt" in request["params"]["message"]
        await cancel(client, task)


async def test_what_plans_below_a_plan_ask_is_asked_of_the_person_too(host: Host, worker: Worker) -> None:
    child = {"id": "below", "tool": "plan", "args": {"steps": [port("q")]}}
    async with agent(build(host)) as client:
        task = (await started(client, plan={"steps": [child]})).task_id
        [(key, request)] = (await until_status(client, task, "input_required")).input_requests.items()
        assert "Which port?" in request["params"]["message"]
        await update(client, task, {key: accepted(port=1)})
        await until_status(client, task, "completed")


async def test_what_failed_is_a_completed_task_with_an_error_and_what_was_terminated_is_cancelled(
    host: Host, worker: Worker, temporal_client: Temporal
) -> None:
    async with agent(build(host)) as client:
        bad = {"steps": [{"id": "r", "tool": "read_file", "args": {"path": "none.txt"}, "retry": {"attempts": 1}}]}
        task = (await started(client, plan=bad)).task_id
        ended = await until_status(client, task, "completed")
        assert ended.result is not None
        assert ended.result["isError"]
        assert ended.ttl_ms is not None
        other = (await started(client, plan=GATED)).task_id
        await temporal_client.get_workflow_handle(f"plan-{other}").terminate()
        assert "terminated" in (await until_status(client, other, "cancelled")).status_message


async def test_clients_without_the_extension_get_plain_answers_and_none_of_its_methods(
    host: Host, worker: Worker
) -> None:
    host.tasks_only = frozenset({"plan_show"})
    async with Client(build(host)) as plain, agent(build(host)) as client:
        found = await plain.call_tool("plan_start", {"plan": GATED})
        task = (found.structured_content or {})["planId"]
        for request in (got, cancel):
            with pytest.raises(MCPError) as refused:
                await request(plain, task)
            assert refused.value.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY
            assert refused.value.error.data == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        with pytest.raises(MCPError) as refused:
            await plain.call_tool("plan_show", {"planId": task})
        assert refused.value.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY
        for unknown in ("tasks-nonexistent", "", "../x", "y" * 300):
            with pytest.raises(MCPError) as refused:
                await got(client, unknown)
            assert refused.value.error.code == INVALID_PARAMS
        await cancel(client, task)
