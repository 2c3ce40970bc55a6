"""People are told of what waits and how plans end: once, in time, whatever is away meanwhile; plans never suffer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.client.verbs import resume
from plansurvive.client.verbs.start import start_run
from plansurvive.features.notify.model import Told
from plansurvive.plans.execution import resume as resumption
from plansurvive.plans.run import Run
from plansurvive.runtime.links import Links
from plansurvive.runtime.settings import Settings
from tests.kit.driving import Plans, Started, work
from tests.kit.sinks import Mails, Sink, mailbox, targets_file, webhook_sink
from tests.kit.waiting import until
from tests.nightly import only_nightly
from tests.workflows.agents import call, says
from tests.workflows.conftest import MakeWorker

pytestmark = pytest.mark.uses("notify")

ASKS = {"requiresApproval": True}


@pytest.fixture
def hook() -> Iterator[Sink]:
    with webhook_sink() as sink:
        yield sink


@pytest.fixture
def mails() -> Iterator[Mails]:
    with mailbox() as found:
        yield found


@pytest.fixture
def targets(state_dir: Path, hook: Sink) -> Path:
    return targets_file(state_dir / "notify.toml", hook=hook.url)


async def said(sink: Sink, number: int = 1) -> list[dict[str, Any]]:
    """The events of a sink, once there are so many."""
    await until(lambda: len(sink.events) >= number, f"{number} events arrive")
    return sink.events


async def told(client: Client, started: Started) -> dict[str, Any]:
    """What the plan's notifications came to."""
    found: dict[str, Any] = await client.get_workflow_handle(f"notify-{started.id}").query("told")
    return found


async def until_told(client: Client, started: Started, **counts: int) -> None:
    """Wait until the plan's notifications have come to this."""

    async def look() -> bool:
        found = await told(client, started)
        return all(found[name] == number for name, number in counts.items())

    await until(look, f"it is {counts}")


def kinds(sink: Sink) -> set[str]:
    """The types of the events of a sink."""
    return {event["type"].removeprefix("org.plans-that-survive.") for event in sink.events}


async def test_a_waiting_approval_is_told_with_its_whole_call_and_digest(
    idle: Plans, make_worker: MakeWorker, hook: Sink, targets: Path
) -> None:
    async with make_worker(notify=targets):
        started = await idle.start([work("a", **ASKS)], notify="hook", title="Nightly <b>")
        event = (await said(hook))[0]
        item = event["data"]["items"][0]
        pending = (await started.view())["pending"][0]
        assert (event["type"], item["stepId"], item["kind"]) == ("org.plans-that-survive.awaiting", "a", "approval")
        assert item["digest"] == pending["digest"]
        assert item["call"]["args"] == pending["args"]
        assert item["command"] == f"plan approve {started.id.removeprefix('plan-')} a --digest {pending['digest']}"
        assert all(post.is_signed for post in hook.posts)
        await started.approve("a")
        await started.ended()
        last = (await said(hook, 2))[1]
        assert last["type"] == "org.plans-that-survive.completed"
        assert "1 completed" in last["data"]["items"][0]["text"]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_target_that_is_away_neither_delays_nor_fails_a_plan_and_gets_its_message_later(
    idle: Plans, make_worker: MakeWorker, hook: Sink, targets: Path
) -> None:
    hook.status = 503
    async with make_worker(notify=targets):
        started = await idle.start([work("a")], notify={"to": "hook", "on": "completed"})
        view = await started.ended()
        assert view["status"] == "completed"
        await until(lambda: len(hook.posts) >= 2, "it is tried again")
        hook.status = 200
        await said(hook)
    assert len(hook.events) == 1
    assert len({post.headers["webhook-id"] for post in hook.posts}) == 1


@pytest.mark.slow
async def test_a_decision_that_was_made_before_it_could_be_said_is_not_said(
    idle: Plans, make_worker: MakeWorker, temporal_client: Client, hook: Sink, targets: Path
) -> None:
    hook.status = 503
    async with make_worker(notify=targets):
        started = await idle.start([work("a", **ASKS)], notify={"to": "hook", "on": "awaiting"})
        await until(lambda: hook.posts, "it is tried")
        await started.approve("a")
        await started.ended()
        hook.status = 200
        await until_told(temporal_client, started, withdrawn=1)
    assert hook.events == []


@pytest.mark.slow
async def test_many_items_that_ask_at_once_are_one_message(
    idle: Plans, make_worker: MakeWorker, hook: Sink, targets: Path
) -> None:
    loop: dict[str, Any] = {"forEach": {"items": list(range(20)), "as": "n"}, **ASKS}
    async with make_worker(notify=targets):
        started = await idle.start([work("each", **loop)], notify={"to": "hook", "on": "awaiting"})
        await until(lambda: sum(len(event["data"]["items"]) for event in hook.events) == 20, "all items are said")
        assert len(hook.events) <= 2
        named = [item["stepId"] for event in hook.events for item in event["data"]["items"]]
        assert sorted(named) == sorted({f"each[{n}]" for n in range(20)})
        await started.handle.terminate()


@pytest.mark.slow
async def test_what_still_waits_is_reminded_of_and_escalated_until_somebody_decides(
    idle: Plans, make_worker: MakeWorker, temporal_client: Client, hook: Sink, state_dir: Path
) -> None:
    other = f'[targets.boss]\nwebhook = "{hook.url}"\nkey = "whsec_{"Ym9z" * 11}"\n'
    file = targets_file(state_dir / "notify.toml", hook=hook.url, more=other)
    rule = {"on": "awaiting", "to": "hook", "remind": "1s", "escalate": {"after": "2s", "to": "boss"}}
    async with make_worker(notify=file):
        started = await idle.start([work("a", **ASKS)], notify=[rule])
        types = {"awaiting", "awaiting.reminder", "awaiting.escalation"}
        await until(lambda: types <= kinds(hook), "all three are said")
        await started.approve("a")
        await started.ended()
        found: dict[str, Any] = {}

        async def quiet() -> bool:
            found.update(await told(temporal_client, started))
            return not found["waiting"] and not found["sending"]

        await until(quiet, "no reminder is left")
    assert found["withdrawn"] == 1
    assert [event["type"] for event in hook.events].count("org.plans-that-survive.awaiting.escalation") == 1


@pytest.mark.crosses_runs
async def test_what_was_said_is_not_said_again_by_the_next_run_of_the_workflow(
    idle: Plans, make_worker: MakeWorker, hook: Sink, targets: Path
) -> None:
    async with make_worker(notify=targets):
        first = [work(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(6)]
        started = await idle.start([*first, work("a", **ASKS)], notify="hook")
        await started.until_status("s5", "completed")
        await started.approve("a")
        await started.ended()
        await until(lambda: "completed" in kinds(hook), "the end is said")
    assert [event["type"].rpartition(".")[2] for event in hook.events] in (["awaiting", "completed"], ["completed"])


@pytest.mark.slow
async def test_the_rules_of_a_worker_hold_for_all_its_plans_and_those_of_a_plan_for_what_runs_in_it(
    idle: Plans, make_worker: MakeWorker, hook: Sink, state_dir: Path
) -> None:
    rules = '[[default]]\non = ["awaiting", "completed"]\nto = "hook"\n'
    file = targets_file(state_dir / "notify.toml", hook=hook.url, more=rules)
    child = {"id": "child", "tool": "plan", "args": {"steps": [work("a", **ASKS)]}}
    async with make_worker(notify=file):
        started = await idle.start([child])
        event = (await said(hook))[0]
        item = event["data"]["items"][0]
        assert item["stepId"] == "a"
        assert item["planId"] != started.id.removeprefix("plan-")
        await idle.client.get_workflow_handle(item["workflowId"]).signal("approve", {"stepId": "a"})
        await started.ended()
        await said(hook, 2)
    ends = [event for event in hook.events if event["type"].endswith(".completed")]
    assert [event["subject"] for event in ends] == [started.id.removeprefix("plan-")]


@pytest.mark.slow
async def test_notifications_are_switched_on_while_a_plan_waits(
    idle: Plans, make_worker: MakeWorker, hook: Sink, targets: Path
) -> None:
    async with make_worker(notify=targets):
        started = await idle.start([work("a", **ASKS)])
        await started.until_asked("a")
        edit = {"op": "set", "path": "notify", "value": "hook"}
        await started.handle.execute_update("edit", {"edits": [edit]})
        assert (await said(hook))[0]["data"]["items"][0]["stepId"] == "a"
        await started.handle.terminate()


async def test_a_plan_without_rules_has_no_event_for_notifications(
    idle: Plans, make_worker: MakeWorker, temporal_client: Client, targets: Path
) -> None:
    async with make_worker(notify=targets):
        plain = await idle.start([work("a", **ASKS)])
        rules = await idle.start([work("a", **ASKS)], notify={"to": "hook", "on": "awaiting"})
        for started in (plain, rules):
            await started.until_asked("a")
        await until_told(temporal_client, rules, said=1)

        async def is_recorded() -> bool:
            return await _markers(rules) >= 2

        await until(is_recorded, "what was said is in the history")  # its task may end after it is said
        assert await _markers(rules) == 2, "one more for the news"
        assert await _markers(plain) == 1, "check_plan, as before"
        for started in (plain, rules):
            await started.handle.terminate()


async def _markers(started: Started) -> int:
    return sum(event.HasField("marker_recorded_event_attributes") for event in await started.events())


async def test_a_mail_has_the_whole_call_as_text_whatever_is_in_it(
    idle: Plans, make_worker: MakeWorker, mails: Mails, state_dir: Path
) -> None:
    file = targets_file(state_dir / "notify.toml", mail=mails.url)
    hostile = "<script>alert(1)</script>\u202e\r\nBcc: eve@example.org"
    async with make_worker(notify=file, web_url="https://plans.example.org"):
        started = await idle.start(
            [work("a", args={"name": "a", "value": hostile}, **ASKS)], notify="mail", title="A\nBcc: eve@example.org"
        )
        await until(lambda: mails.found, "a mail arrives")
        pending = (await started.view())["pending"][0]
        await started.handle.terminate()
    mail, text = mails.found[0], mails.texts[0]
    assert mail["Subject"] == f"{started.id.removeprefix('plan-')}: step a awaits approval"
    assert mail["Bcc"] is None
    assert mail["X-Plans-Delivery"].startswith("msg_")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e}" in text
    assert "<script>" not in text
    assert pending["digest"] in text
    token = re.findall(r'href="https://plans.example.org/decide/([^"]+)"', text)[0]
    link = Links(Settings.read({"HOME": "/", "PLANS_STATE_DIR": str(state_dir)})).verify(token)
    assert (link.step_id, link.version, link.digest) == ("a", 1, pending["digest"])
    assert link.person == "ann@example.org"


@pytest.mark.parametrize("end", [only_nightly("cancelled"), "failed", only_nightly("partial"), "refused"])
async def test_every_end_is_said_with_its_reason(
    end: str, idle: Plans, make_worker: MakeWorker, hook: Sink, targets: Path
) -> None:
    refuse = {"id": "bad", "tool": "refuse", "args": {"code": "CONFLICT"}}
    steps = {
        "cancelled": [work("a", **ASKS)],
        "failed": [{**refuse, "critical": True}],
        "partial": [refuse, work("a")],
        "refused": [{"id": "a", "tool": "unheard_of", "args": {}}],
    }[end]
    async with make_worker(notify=targets):
        started = await idle.start(steps, notify={"to": "hook", "on": ["failed", "partial", "cancelled"]})
        if end == "cancelled":
            await started.until_asked("a")
            await started.handle.cancel()
        event = (await said(hook))[0]
    wanted = {
        "cancelled": "cancelled",
        "failed": "CONFLICT",
        "partial": "failed: bad: CONFLICT",
        "refused": "unheard_of",
    }
    assert event["type"].endswith(end.replace("refused", "failed"))
    assert wanted[end] in event["data"]["items"][0]["text"]


async def test_a_resumed_plan_says_what_it_asks_and_how_it_ends(
    idle: Plans, make_worker: MakeWorker, hook: Sink, targets: Path
) -> None:
    async with make_worker(notify=targets):
        first = await idle.start([work("a", **ASKS), work("b", "a")], notify="hook")
        await said(hook)
        await first.deny("a")
        await first.ended()
        before = [event["type"].rpartition(".")[2] for event in await said(hook, 2)]
        assert before[0] == "awaiting"
        again = Started(idle.client, (await resume.resume(idle.client, first.id)).workflow_id)
        await again.until_asked("a")
        await said(hook, 3)
        await again.approve("a")
        assert (await again.ended())["status"] == "completed"
        assert [event["type"].rpartition(".")[2] for event in await said(hook, 4)][2:] == ["awaiting", "completed"]


async def test_a_run_that_resumes_one_whose_end_was_told_tells_its_own(
    idle: Plans, make_worker: MakeWorker, hook: Sink, targets: Path
) -> None:
    """As a worker has the ended run: its stored record is of before its end was told."""
    async with make_worker(notify=targets):
        first = await idle.start(
            [work("a", **ASKS), work("b", "a")], notify={"to": "hook", "on": ["partial", "completed"]}
        )
        await first.until_asked("a")
        await first.deny("a")
        await first.ended()
        await said(hook)
        run = Run.model_validate(await first.handle.query("state"))
        assert run.part(Told).ended
        run = resumption.resumed(run, f"{run.plan.id}-r2", datetime.now(UTC))
        again = Started(idle.client, (await start_run(idle.client, run, idle.queue)).workflow_id)
        await again.until_asked("a")
        await again.approve("a")
        assert (await again.ended())["status"] == "completed"
        assert [event["type"].rpartition(".")[2] for event in await said(hook, 2)] == ["partial", "completed"]


@pytest.mark.slow
async def test_a_terminated_plan_sends_no_reminder(
    idle: Plans, make_worker: MakeWorker, temporal_client: Client, hook: Sink, targets: Path
) -> None:
    async with make_worker(notify=targets):
        started = await idle.start([work("a", **ASKS)], notify={"to": "hook", "on": "awaiting", "remind": 1})
        await said(hook)
        await started.handle.terminate()
        await until_told(temporal_client, started, withdrawn=1, waiting=0)


@pytest.mark.slow
async def test_what_an_agent_asks_is_said_to_those_whom_its_plan_names(
    idle: Plans, make_worker: MakeWorker, hook: Sink, targets: Path
) -> None:
    story = [says({"tool_calls": [call("run_command", command="true")]}), says({"answer": "done"})]
    with ScriptedLlm(Script.of(story)) as llm:
        async with make_worker(notify=targets, openai_base_url=llm.url, model="demo"):
            agent = {"id": "agent", "tool": "agent", "args": {"objective": "Do it."}}
            started = await idle.start([agent], notify="hook")
            item = (await said(hook))[0]["data"]["items"][0]
            assert item["planId"].startswith("agent-")
            assert item["call"]["args"]["command"] == "true"
            await idle.client.get_workflow_handle(item["workflowId"]).signal("approve", {"stepId": item["stepId"]})
            await started.ended()
            await said(hook, 2)
    assert [event["subject"] for event in hook.events][1:] == [started.id.removeprefix("plan-")]
