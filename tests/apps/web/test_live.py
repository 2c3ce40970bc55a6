"""A plan's page changes as the plan does: for everybody, at the cost of one, and without a trace in its history."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.client import runs
from plansurvive.client.errors import NoWorker
from plansurvive.client.runs import Choice, Started
from plansurvive.client.watchers.watcher import Watcher
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import browsing, csrf_of, service_for
from tests.apps.web.served import Viewer, served
from tests.kit.driving import terminated
from tests.kit.waiting import until
from tests.test_imports import ROOT

Start = Callable[..., Any]
WRITE = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}}
REMOVE = {"id": "remove", "tool": "delete_file", "args": {"path": "a.txt"}, "dependsOn": ["write"]}
HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture
async def start(temporal_client: Client, queue: str, workspace: Path) -> AsyncIterator[Start]:
    """Start a plan of these steps; terminated at the end if it still runs."""
    begun: list[Started] = []

    async def start_plan(*steps: Any, title: str = "A test", **options: Any) -> str:
        given = Options(workspace=str(workspace), **options)
        plan = {"title": title, "steps": list(steps)}
        begun.append(await runs.start(temporal_client, plan, options=given, queue=queue))
        name: str = begun[-1].plan_id
        return name

    yield start_plan
    for started in begun:
        await terminated(temporal_client, started.workflow_id)


async def _events(client: Client, plan: str) -> int:
    return (await client.get_workflow_handle(f"plan-{plan}").describe()).history_length


@pytest.mark.slow
@pytest.mark.in_turn
async def test_ten_viewers_cost_what_one_does_and_leave_no_trace_in_the_history(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    plan = await start(WRITE, REMOVE)
    service = service_for(settings, temporal_client)
    async with served(service) as browser:
        first = Viewer(browser, f"/plans/{plan}/live")
        await until(lambda: first.states.get("remove") == "waiting", "the first viewer sees the question")
        watcher = await service.watcher(plan)
        before = await _events(temporal_client, plan), watcher.queries
        viewers = [Viewer(browser, f"/plans/{plan}/live") for _ in range(9)]
        await until(lambda: all(each.states.get("remove") == "waiting" for each in viewers), "late ones see it too")
        assert await _events(temporal_client, plan) == before[0]
        assert watcher.queries <= before[1] + 1, "one may have been under way"
        assert await service.watcher(plan) is watcher
        await runs.approve(temporal_client, plan, Choice(step_id="remove", by="ann"))
        everybody = [first, *viewers]
        await until(lambda: all(each.events[-1][0] == "ended" for each in everybody), "all see the end")
        assert all(each.states == {"write": "completed", "remove": "completed"} for each in everybody)
        assert "Ended as" in first.html
        assert watcher.queries <= before[1] + 5
        for each in everybody:
            await each.close()


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_viewer_that_comes_back_gets_what_changed_meanwhile_and_nothing_else(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    plan = await start(WRITE, REMOVE)
    async with served(service_for(settings, temporal_client)) as browser:
        viewer = Viewer(browser, f"/plans/{plan}/live")
        await until(lambda: viewer.states.get("remove") == "waiting", "it asks")
        await viewer.close()
        await runs.approve(temporal_client, plan, Choice(step_id="remove", by="ann"))
        await runs.wait(temporal_client, plan)
        back = Viewer(browser, f"/plans/{plan}/live", viewer.last)
        await until(lambda: back.events and back.events[-1][0] == "ended", "it sees the end")
        assert back.states == {"remove": "completed"}
        unknown = Viewer(browser, f"/plans/{plan}/live", "0123abcd-7")
        await until(lambda: unknown.events and unknown.events[-1][0] == "ended", "so does one of another server")
        assert unknown.states == {"write": "completed", "remove": "completed"}
        assert "reload" in [event for event, _ in unknown.events]


@pytest.mark.slow
async def test_a_burst_of_changes_is_few_messages(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    steps = [{**WRITE, "id": f"s{n}", "args": {"path": f"{n}.txt", "content": "x"}} for n in range(60)]
    plan = await start(*steps)
    async with served(service_for(settings, temporal_client)) as browser:
        viewer = Viewer(browser, f"/plans/{plan}/live")
        await until(lambda: viewer.events and viewer.events[-1][0] == "ended", "the plan ends")
        changes = len(await runs.events(temporal_client, plan))
        assert changes >= 120
        assert sum(event == "steps" for event, _ in viewer.events) < changes / 4
        assert set(viewer.states.values()) == {"completed"}


@pytest.mark.slow
async def test_the_page_says_since_when_no_worker_answers_and_continues_by_itself(
    settings: Settings, temporal_client: Client, environ: dict[str, str], start: Start, tmp_path: Path
) -> None:
    plan = await start(WRITE, REMOVE)
    async with served(service_for(settings, temporal_client)) as browser, AsyncExitStack() as processes:
        worker = await _worker(processes, environ, tmp_path)
        await until(lambda: _asks(temporal_client, plan), "a worker has it")
        viewer = Viewer(browser, f"/plans/{plan}/live")
        await until(lambda: viewer.states.get("remove") == "waiting", "it asks")
        worker.send_signal(signal.SIGKILL)
        await until(lambda: "No worker answers since" in viewer.html, "the page says so")
        page = await browser.get(f"/plans/{plan}")
        assert (page.status_code, "No worker answers since" in page.text) == (200, True)
        await temporal_client.get_workflow_handle(f"plan-{plan}").signal("approve", {"stepId": "remove"})
        await _worker(processes, environ, tmp_path)
        await until(lambda: viewer.states.get("remove") == "completed", "it continues")
        await until(lambda: "No worker answers" not in viewer.heads[-1], "and says nothing of the kind any more")
        await viewer.close()


async def _worker(processes: AsyncExitStack, environ: dict[str, str], directory: Path) -> asyncio.subprocess.Process:
    """A worker process of its own, killed at the end."""
    with (directory / "worker.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(ROOT / "worker.py"), env=environ, stdout=log, stderr=log
        )

    async def end() -> None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    processes.push_async_callback(end)
    return process


async def test_one_plan_is_shown_with_its_steps_and_whatever_they_hold_is_text(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    hostile = {**WRITE, "description": HOSTILE, "args": {"path": "a.txt", "content": HOSTILE}}
    plan = await start(hostile, REMOVE, title=HOSTILE)
    async with browsing(service_for(settings, temporal_client)) as browser:
        await until(lambda: _asks(temporal_client, plan), "it asks")
        for url in (
            "",
            "/list",
            "/steps/write",
            "/steps/remove",
            "/changes",
            "/cost",
            "/logs",
            "/files",
            "/files?now=1",
        ):
            answer = await browser.get(f"/plans/{plan}{url}")
            assert answer.status_code == 200, (url, answer.text)
            assert "<script>alert" not in answer.text
            assert "\u202e" not in answer.text
        text = (await browser.get(f"/plans/{plan}")).text
        assert f'href="/plans/{plan}/steps/remove/decide"' in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e" in text
        whole = await browser.get(f"/plans/{plan}/value/write")
        assert whole.headers["content-type"].startswith("text/plain")
        assert "a.txt" in whole.text


async def _asks(client: Client, plan: str) -> bool:
    with suppress(NoWorker):  # its process may just have begun
        return bool((await runs.show(client, plan)).pending)
    return False


async def test_a_plan_is_paused_unpaused_and_cancelled_by_form(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    plan = await start(WRITE, REMOVE)
    service = service_for(settings, temporal_client)
    async with browsing(service) as browser:
        await until(lambda: _asks(temporal_client, plan), "it asks")
        form = {"csrf": csrf_of(browser, service)}
        for action, status in (("pause", "paused"), ("unpause", "running")):
            answer = await browser.post(f"/plans/{plan}/{action}", data=form, follow_redirects=True)
            assert answer.status_code == 200
            assert 'class="said"' in answer.text
            view = await runs.show(temporal_client, plan)
            assert view.status == status
            assert view.log[-1].text.endswith(f"{action}d by ann (web)")
        refused = await browser.post(f"/plans/{plan}/cancel", data={})
        assert refused.status_code == 400
        await browser.post(f"/plans/{plan}/cancel", data=form)
        assert (await runs.wait(temporal_client, plan)).status == "cancelled"
        again = await browser.post(f"/plans/{plan}/cancel", data=form)
        assert (again.status_code, "PLAN_CLOSED" in again.text) == (409, True)


@pytest.mark.slow
async def test_items_of_a_loop_are_folded_and_unfolded_in_pages(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    each = {**WRITE, "id": "one", "args": {"path": "{{item}}.txt", "content": "x"}}
    plan = await start({"id": "all", "forEach": [f"n{n}" for n in range(130)], "steps": [each]})
    await runs.wait(temporal_client, plan)
    async with browsing(service_for(settings, temporal_client)) as browser:
        text = (await browser.get(f"/plans/{plan}")).text
        assert "130 items: 130 done" in text
        assert "all[n7].one" not in text
        page = await browser.get(f"/plans/{plan}/inside/all", headers={"HX-Request": "true"})
        assert page.text.count('class="step ') == 100
        assert "?since=100" in page.text
        name = "all%5B7%5D.one"
        found = await browser.get(f"/plans/{plan}/steps/{name}")
        assert found.status_code == 200, found.text
        assert "n7.txt" in found.text


async def test_an_unknown_plan_or_step_is_told_with_its_code(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    plan = await start(WRITE)
    async with browsing(service_for(settings, temporal_client)) as browser:
        for url, status, code in (
            ("/plans/no-such-plan", 404, "PLAN_NOT_FOUND"),
            (f"/plans/{plan}/steps/wrlte", 404, "did you mean 'write'?"),
            ("/plans/%3Cb%3E", 404, "BAD_PLAN_ID"),
            (f"/plans/{plan}/steps/no-such-step", 404, "UNKNOWN_STEP"),
            (f"/plans/{plan}/inside/no-such-step", 404, "UNKNOWN_STEP"),
        ):
            answer = await browser.get(url)
            assert (answer.status_code, code in unescape(answer.text)) == (status, True), answer.text

        async def is_meant() -> bool:
            return f"did you mean '{plan}'?" in unescape((await browser.get(f"/plans/{plan}x")).text)

        await until(is_meant, "the list has the plan")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_output_is_followed_by_all_who_look_and_late_ones_get_it_from_the_beginning(
    settings: Settings, temporal_client: Client, worker: Worker, start: Start
) -> None:
    command = {"id": "say", "tool": "run_command", "args": {"command": "echo '<b>one</b>'; echo two >&2"}}
    plan = await start({**command, "requiresApproval": False})
    async with served(service_for(settings, temporal_client)) as browser:
        early = Viewer(browser, f"/plans/{plan}/logs/live")
        await until(lambda: early.events and early.events[-1][0] == "ended", "the end is told")
        late = Viewer(browser, f"/plans/{plan}/logs/live?step=say")
        await until(lambda: late.events and late.events[-1][0] == "ended", "the end is told")
        for viewer in (early, late):
            assert "&lt;b&gt;one&lt;/b&gt;" in viewer.html
            assert "stderr'>two" in viewer.html


async def test_a_watcher_that_nobody_uses_ends(temporal_client: Client, worker: Worker, start: Start) -> None:
    plan = await start(WRITE, REMOVE)
    watcher = Watcher(temporal_client, plan, idle=0)
    await watcher.first()
    said = [watcher.is_idle]
    with watcher.viewed():
        said.append(watcher.is_idle)
    assert said == [True, False]
    await asyncio.wait_for(watcher.stop(), 10)
