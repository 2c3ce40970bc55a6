"""What a client sees of steps that run: attempts, waits and progress, live and afterwards, on a real server."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.client.live.feed import PROGRESS, News
from plansurvive.client.live.in_flight import InFlight
from plansurvive.client.live.steps import by_step, in_words, joined, with_blocks
from plansurvive.client.runs import EventView, Started
from plansurvive.features.agents.model.order import AgentOrder
from plansurvive.features.cache.commands import why_of
from plansurvive.plans.activity_io import Attempt
from plansurvive.plans.run import Options
from plansurvive.plans.views.models import BriefView
from plansurvive.plans.views.models.live import attempt_text, live_of
from plansurvive.plans.views.steps.row import live_row
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from plansurvive.worker import build
from tests.client.cli.command import line_with, plan, running
from tests.kit import ledger_tools
from tests.kit.driving import terminated
from tests.kit.waiting import until

NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)
Start = Callable[..., Any]


@pytest.fixture
async def start(temporal_client: Client, settings: Settings, queue: str, workspace: Path) -> AsyncIterator[Start]:
    """Start a plan of these steps, with a worker that has the tools of the tests."""
    begun: list[Started] = []

    async def start_plan(*steps: dict[str, Any]) -> str:
        options = Options(workspace=str(workspace))
        begun.append(await runs.start(temporal_client, {"steps": list(steps)}, options=options, queue=queue))
        return begun[-1].plan_id

    async with build(temporal_client, settings, load_tools([ledger_tools.__file__]), indexed=True):
        await until(lambda: listeners(temporal_client, settings.task_queue), "the server sees the worker poll")
        yield start_plan
        for started in begun:
            await terminated(temporal_client, started.workflow_id)


def flaky(fails: int, delay: float, **more: Any) -> dict[str, Any]:
    """A step that fails so often, with this wait between its three attempts."""
    args = {"name": "a", "fails": fails, **more}
    return {"id": "a", "tool": "work", "args": args, "retry": {"attempts": 3, "delay": delay, "factor": 1.0}}


async def test_a_step_that_waits_for_its_next_attempt_says_which_it_is_and_when_it_begins(
    temporal_client: Client, start: Start
) -> None:
    plan = await start(flaky(9, 600.0))

    async def waits() -> Any:
        live = (await runs.live(temporal_client, plan)).get("a")
        return live if live and live.next_at else None

    live = await until(waits, "the second attempt is awaited")
    assert (live.attempt, live.of, [each.code for each in live.attempts]) == (2, 3, ["BUSY"])
    began = live.attempts[0].began
    assert timedelta(seconds=590) < live.next_at - began < timedelta(seconds=660)
    words = in_words(live, live.next_at - timedelta(seconds=1))
    assert words == "attempt 2 of 3 in 1 s  after BUSY: call 1 of a fails"
    why = (await why_of(temporal_client, plan, "a")).text
    assert re.search(r"\n  now: attempt 2 of 3 in \d+ min( \d+ s)?  after BUSY: call 1 of a fails$", why)
    view = joined(await runs.brief(temporal_client, plan), {"a": live})
    assert view.steps[0].live == live


TRIES = "echo x >> tries; [ $(wc -l < tries) -gt 2 ] || exit 3; until [ -e go ]; do sleep 0.02; done"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_watcher_sees_each_failed_attempt_while_the_step_runs_and_a_late_one_sees_them_with_its_end(
    temporal_client: Client, start: Start, workspace: Path
) -> None:
    rule = {"attempts": 3, "delay": 0.1, "factor": 1.0}
    step = {"id": "a", "tool": "run_command", "args": {"command": TRIES}, "requiresApproval": False, "retry": rule}
    plan = await start(step)
    seen: list[EventView] = []
    told: list[str] = []
    async for event in runs.watch(temporal_client, plan, live=True):
        seen.append(event)
        told += [entry.text for entry in event.logs or () if entry.kind == "attempt"]
        if len(told) == 2:
            (workspace / "go").touch()
    assert [text.partition(" failed: COMMAND_FAILED ")[0] for text in told] == ["attempt 1 of 3", "attempt 2 of 3"]
    assert all(text.endswith("; next in 0.1 s") for text in told)
    late = [event async for event in runs.watch(temporal_client, plan)]
    for events in (seen, late):
        [end] = [event for event in events if event.step_id == "a" and event.status == "completed"]
        assert [(each.number, each.code, each.delay) for each in end.attempts or ()] == [
            (1, "COMMAND_FAILED", 0.1), (2, "COMMAND_FAILED", 0.1)
        ]  # fmt: skip
    stored = [event for event in seen if not (event.logs and event.logs[0].kind in ("attempt", PROGRESS))]
    assert stored == late


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_tool_of_ones_own_reports_percent_which_the_watcher_sees_before_it_ends(
    temporal_client: Client, start: Start, workspace: Path
) -> None:
    percents = [0.5, 42.9, 250.0]
    plan = await start({"id": "a", "tool": "report", "args": {"percents": percents, "until": "file"}})
    seen: list[EventView] = []
    async for event in runs.watch(temporal_client, plan, live=True):
        seen.append(event)
        if event.logs and event.logs[0].kind == PROGRESS:
            (workspace / "file").write_text("x" * min(3, int(event.logs[0].text.split()[1])))
    told = [(event.progress, event.logs[0].text) for event in seen if event.logs and event.logs[0].kind == PROGRESS]
    assert told == [(0, "part 1 of 3"), (42, "part 2 of 3"), (100, "part 3 of 3")]
    assert [event.seq for event in seen] == sorted(event.seq for event in seen)
    assert [event.progress for event in seen if event.status == "completed" and event.step_id] == [100]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_command_line_shows_an_attempt_that_is_awaited_and_the_lines_of_a_watcher_tell_why(
    temporal_client: Client, environ: dict[str, str], start: Start
) -> None:
    plan_id = await start(flaky(9, 600.0))

    async def waits() -> bool:
        return "a" in await runs.live(temporal_client, plan_id)

    await until(waits, "the second attempt is awaited")
    text = (await plan(environ, "show", plan_id)).out
    [row] = [row for row in text.splitlines() if row.startswith("Now: a: ")]
    assert re.fullmatch(r"Now: a: attempt 2 of 3 in \d+ min( \d+ s)?  after BUSY: call 1 of a fails", row)
    live = (await plan(environ, "show", plan_id, "--json")).json["live"]["a"]
    assert (live["attempt"], live["of"], live["attempts"][0]["code"]) == (2, 3, "BUSY")
    async with running(environ, "watch", plan_id) as process:
        told = await line_with(process, "attempt 1 of 3 failed: BUSY call 1 of a fails; next in 600 s")
        await runs.cancel(temporal_client, plan_id)
        assert await process.wait() == 1
    assert " a " in told
    ended = (await plan(environ, "show", plan_id, "--json")).json
    assert "live" not in ended


async def test_an_agents_busy_llm_is_seen_while_it_waits(
    temporal_client: Client, settings: Settings, queue: str, workspace: Path
) -> None:
    busy = {"status": 503, "error": "busy", "headers": {"Retry-After": "60"}}
    with ScriptedLlm(Script.of([{"reply": busy, "times": 0}])) as llm:
        asking = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with build(temporal_client, asking, load_tools(()), indexed=True):
            order, options = AgentOrder(request="read a.txt"), Options(workspace=str(workspace))
            agent = await runs.start_agent(temporal_client, order, options=options, queue=queue)

            async def waits() -> Any:
                live = (await runs.live(temporal_client, agent.plan_id)).get("")
                return live if live and live.next_at else None

            live = await until(waits, "the LLM is asked again later")
            await terminated(temporal_client, agent.workflow_id)
    assert (live.attempt, live.of, live.attempts[0].code) == (2, 5, "LLM_UNAVAILABLE")


async def test_a_step_that_a_worker_without_its_tool_took_says_so(
    temporal_client: Client, settings: Settings, queue: str, workspace: Path
) -> None:
    steps = [{"id": "now", "tool": "ask", "args": {"question": "Now?"}}, {**flaky(0, 1.0), "dependsOn": ["now"]}]
    async with build(temporal_client, settings, load_tools([ledger_tools.__file__]), indexed=True):
        options = Options(workspace=str(workspace))
        started = await runs.start(temporal_client, {"steps": steps}, options=options, queue=queue)

        async def asks() -> bool:
            return bool((await runs.show(temporal_client, started.plan_id)).pending)

        await until(asks, "the question is asked")
    async with build(temporal_client, settings, load_tools(()), indexed=True):
        await runs.answer(temporal_client, started.plan_id, "now", "yes")

        async def said() -> str:
            live = (await runs.live(temporal_client, started.plan_id)).get("a")
            return live.line if live else ""

        assert await until(said, "a worker took it") == "a worker without this tool took it; it is tried again"
        await terminated(temporal_client, started.workflow_id)


def seen_in(details: Any, *, next_at: datetime | None = None, agent: str = "", below: str = "") -> InFlight:
    """An activity with these heartbeat details."""
    return InFlight("plan-p/a", "a", "work", live_of(details, next_at), agent, below)


FAILED = Attempt(number=1, began=NOW, duration=100.0, code="BUSY", error="busy", delay=1.0)
DETAILS = {"errors": 1, "of": 3, "line": "half", "attempts": [FAILED.model_dump(mode="json")]}


def test_an_attempt_counts_down_to_its_begin() -> None:
    live = live_of(DETAILS, NOW + timedelta(seconds=2))
    said = [attempt_text(live, NOW + timedelta(seconds=late)) for late in (0, 1, 2, 4, 6)]
    assert said == [
        "attempt 2 of 3 in 2 s", "attempt 2 of 3 in 1 s", "attempt 2 of 3 in 0 s", "attempt 2 of 3 in 0 s",
        "attempt 2 of 3 awaits a worker",
    ]  # fmt: skip
    assert attempt_text(live_of(DETAILS), NOW) == "attempt 2 of 3"
    assert attempt_text(live_of({"errors": 0, "of": 3}), NOW) == ""


@pytest.mark.parametrize(
    "details",
    [
        None, 5, "text", [], {"errors": -1, "of": "many", "progress": "half", "line": 5, "attempts": 3},
        {"errors": True, "of": 10**9, "progress": float("nan"), "attempts": [{"number": "x"}, None]},
        {"progress": True, "moreAttempts": -1}, {"progress": float("inf"), "line": ["a"]},
    ],
)  # fmt: skip
def test_details_that_cannot_be_read_show_a_step_that_runs(details: Any) -> None:
    assert live_of(details).is_plain


@pytest.mark.parametrize(
    ("reported", "shown"), [(-3, 0), (0, 0), (99.99, 99), (100, 100), (1e300, 100), (10**400, 100)]
)
def test_percent_is_from_0_to_100(reported: float, shown: int) -> None:
    assert live_of({"progress": reported}).progress == shown


def test_news_is_told_once_and_not_after_the_end_of_its_step() -> None:
    news = News("p", 7)
    first = list(news.of([seen_in(DETAILS)], NOW))
    assert [(event.seq, event.logs and event.logs[0].kind) for event in first] == [(7, "attempt"), (7, PROGRESS)]
    assert list(news.of([seen_in(DETAILS)], NOW)) == []
    assert len(list(news.of([seen_in({**DETAILS, "progress": 50})], NOW))) == 1
    end = EventView(seq=9, time=NOW, task_id="p", step_id="a", status="completed")
    news.take(end)
    assert list(news.of([seen_in({**DETAILS, "progress": 60})], NOW)) == []
    assert not news.is_current(first[0])


def test_a_watcher_is_told_which_step_of_a_child_plan_an_attempt_or_progress_is_of() -> None:
    own, of_agent = seen_in(DETAILS, below="deep/ag"), seen_in(DETAILS, below="deep/ag", agent="agent-p-a-deep-ag")
    for each, what in ((own, "deep/ag: "), (of_agent, "deep/ag: work: ")):
        events = list(News("p").of([each], NOW))
        assert [event.step_id for event in events] == ["a", "a"]
        assert {entry.subject for event in events for entry in event.logs or ()} == {what.removesuffix(": ")}
        assert [entry.text for event in events for entry in event.logs or ()] == [
            f"{what}attempt 1 of 3 failed: BUSY busy; next in 1 s", f"{what}half"
        ]  # fmt: skip


def test_a_loop_tells_of_the_item_tried_most_often_and_never_takes_its_percent_for_its_own() -> None:
    seen = {"each[a].x": live_of({"line": "begun", "progress": 5}), "each[b]": live_of(DETAILS), "poll#2": live_of({})}
    found = with_blocks(seen)
    assert found == seen | {"each": seen["each[b]"].model_copy(update={"what": "[b]", "line": "[b]: half"})}
    inside = {"kind": "each", "counts": {"running": 2}, "total": 2, "began": 2}
    step = {"id": "each", "tool": "", "status": "running", "inside": inside}
    view = BriefView.read({"status": "running", "steps": [step]})
    stands = live_row(joined(view, found).steps[0], NOW)
    assert (stands.share, stands.attempt, stands.error) == (None, "", "")
    assert stands.text.endswith("2 running · [b]: attempt 2 of 3: half")


def test_attempts_of_a_child_plans_step_are_not_those_of_the_step_that_runs_it() -> None:
    live = by_step([seen_in(DETAILS, next_at=NOW + timedelta(seconds=207), below="book/retry")])["a"]
    view = BriefView.read({"status": "running", "steps": [{"id": "a", "tool": "plan", "status": "running"}]})
    stands = live_row(joined(view, {"a": live}).steps[0], NOW)
    assert (stands.attempt, stands.error, stands.share) == ("", "", None)
    assert stands.text == "book/retry: attempt 2 of 3 in 3 min 27 s: busy"
    assert in_words(live, NOW) == stands.text


def test_a_loop_tells_which_item_lost_its_worker() -> None:
    lost = Attempt(number=1, began=NOW, duration=1.0, code="WORKER_LOST", error="its worker was lost")
    item = live_of({"attempts": [lost.model_dump(mode="json")]}, NOW - timedelta(seconds=60))
    found = with_blocks({"each[a]": item})["each"]
    assert in_words(found, NOW) == "[a]: attempt 1 awaits a worker: its worker was lost"


def test_of_an_agents_calls_the_one_tried_most_often_is_shown_with_its_tool() -> None:
    others = [seen_in({"errors": 0, "line": "x"}, agent="agent-p-a"), seen_in(DETAILS, agent="agent-p-a")]
    live = by_step(others)["a"]
    assert (live.attempt, live.line) == (2, "work: half")
    view = BriefView.read({"status": "running", "steps": [{"id": "a", "tool": "agent", "status": "running"}]})
    assert joined(view, {"a": live, "gone": live}).steps[0].live == live
    done = BriefView.read({"status": "running", "steps": [{"id": "a", "tool": "agent", "status": "completed"}]})
    assert joined(done, {"a": live}).steps[0].live is None
