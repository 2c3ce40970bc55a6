"""A one-time link on the page: opening it decides nothing, its button decides once, and only about what was shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import httpx
import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.client.runs import Choice
from plansurvive.plans.run import Options
from plansurvive.plans.views.models.card import Card
from plansurvive.runtime.links import Links
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.apps.web.page_client import ORIGIN, pages_of, service_for
from tests.kit.waiting import until

STEP = {"id": "remove", "tool": "delete_file", "args": {"path": "<b>x.txt"}}


class Asked(NamedTuple):
    """A plan, what it asks, and the first run of its workflow."""

    plan: str
    item: Card
    run: str


@asynccontextmanager
async def browsing(settings: Settings, client: Client | None) -> AsyncIterator[httpx.AsyncClient]:
    """A browser of somebody who has no session."""
    transport = httpx.ASGITransport(pages_of(service_for(settings, client)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers={"Origin": ORIGIN}) as browser:
        yield browser


@pytest_asyncio.fixture
async def asked(temporal_client: Client, settings: Settings, worker: Worker) -> Asked:
    """A plan whose step awaits approval."""
    assert worker.is_running
    options = Options(workspace=str(settings.workspace))
    started = await runs.start(temporal_client, {"steps": [STEP]}, options=options, queue=settings.task_queue)

    async def pending() -> list[Card]:
        return (await runs.brief(temporal_client, started.plan_id)).pending

    await until(pending, "the step asks")
    return Asked(started.plan_id, (await pending())[0], started.run_id)


def token_for(settings: Settings, plan: str, run: str, item: Card, **other: object) -> str:
    given = {"version": item.version, "digest": item.digest, "person": "ann@example.org"} | other
    expires = datetime.now(UTC) + timedelta(hours=1)
    return Links(settings).issue(plan, run, item.step_id, expires=expires, **given)  # type: ignore[arg-type]


def csrf_on(page: httpx.Response) -> str:
    return page.text.partition('name="csrf" value="')[2].partition('"')[0]


async def decision(client: Client, plan: str) -> tuple[bool, str] | None:
    step = (await runs.show(client, plan)).step("remove")
    assert step is not None
    return (step.decision.approved, f"{step.decision.by} {step.decision.via}") if step.decision else None


async def test_opening_a_link_shows_the_whole_call_and_decides_nothing(
    temporal_client: Client, settings: Settings, asked: Asked
) -> None:
    plan, item, run = asked
    async with browsing(settings, temporal_client) as browser:
        for method in ("GET", "HEAD", "GET"):
            page = await browser.request(method, f"/decide/{token_for(settings, plan, run, item)}")
            assert page.status_code == 200
        assert "&lt;b&gt;x.txt" in page.text
        assert item.digest[:16] in page.text
        assert (await decision(temporal_client, plan)) is None
        assert (await browser.get("/")).status_code == 403  # the link opens nothing else
        assert (await browser.get(f"/plans/{plan}/steps/remove/decide")).status_code == 403


@pytest.mark.parametrize(("verb", "approved"), [("approve", True), ("deny", False)])
async def test_the_button_decides_once_in_the_name_of_the_person(
    temporal_client: Client, settings: Settings, asked: Asked, verb: str, approved: bool
) -> None:
    plan, item, run = asked
    token = token_for(settings, plan, run, item)
    async with browsing(settings, temporal_client) as browser:
        csrf = csrf_on(await browser.get(f"/decide/{token}"))
        for wrong in ({"decision": verb}, {"decision": verb, "csrf": "x"}, {"csrf": csrf}):
            assert (await browser.post(f"/decide/{token}", data=wrong)).status_code == 400
        foreign = {"Origin": "https://evil.example"}
        given = {"decision": verb, "csrf": csrf, "comment": "as agreed"}
        assert (await browser.post(f"/decide/{token}", data=given, headers=foreign)).status_code == 403
        assert (await decision(temporal_client, plan)) is None
        said = await browser.post(f"/decide/{token}", data=given)
        assert (said.status_code, "by ann@example.org (link): as agreed" in said.text) == (200, True), said.text
        assert await decision(temporal_client, plan) == (approved, "ann@example.org link")
        for again in (await browser.get(f"/decide/{token}"), await browser.post(f"/decide/{token}", data=given)):
            assert (again.status_code, "LINK_USED" in again.text) == (410, True)
            assert "by ann@example.org (link)" in again.text


async def test_of_two_clicks_in_the_same_moment_one_decides_and_the_other_sees_what(
    temporal_client: Client, settings: Settings, asked: Asked
) -> None:
    plan, item, run = asked
    token = token_for(settings, plan, run, item)
    async with browsing(settings, temporal_client) as one, browsing(settings, temporal_client) as other:
        forms = [
            {"decision": verb, "csrf": csrf_on(await browser.get(f"/decide/{token}"))}
            for browser, verb in ((one, "approve"), (other, "deny"))
        ]
        answers = await asyncio.gather(
            one.post(f"/decide/{token}", data=forms[0]), other.post(f"/decide/{token}", data=forms[1])
        )
        assert sorted(answer.status_code for answer in answers) == [200, 410]
        decided = await decision(temporal_client, plan)
        verb = "approved" if decided and decided[0] else "denied"
        assert all(f"{verb} by ann@example.org" in answer.text for answer in answers)


async def test_a_link_about_another_call_version_or_step_decides_nothing(
    temporal_client: Client, settings: Settings, asked: Asked
) -> None:
    plan, item, run = asked
    stale = [token_for(settings, plan, run, item, digest="0" * 64), token_for(settings, plan, run, item, version=99)]
    gone = Links(settings).issue(plan, run, "none", 1, item.digest, "ann", datetime.now(UTC) + timedelta(hours=1))
    async with browsing(settings, temporal_client) as browser:
        csrf_of = {
            token: csrf_on(await browser.get(f"/decide/{token_for(settings, plan, run, item)}")) for token in stale
        }
        refused = await browser.get(f"/decide/{stale[0]}")
        assert (refused.status_code, "STALE_DIGEST" in refused.text) == (409, True)
        assert csrf_on(refused) == ""
        csrf = csrf_on(await browser.get(f"/decide/{stale[1]}"))
        for code, data in (("STALE_VERSION", {"csrf": csrf}), ("BAD_FORM", {"csrf": csrf_of[stale[1]]})):
            answer = await browser.post(f"/decide/{stale[1]}", data=data | {"decision": "approve"})
            assert (answer.status_code in (400, 409), code in answer.text) == (True, True), answer.text
        assert "asks nothing now" in (await browser.get(f"/decide/{gone}")).text
        assert (await decision(temporal_client, plan)) is None


async def test_a_link_that_comes_too_late_says_what_was_decided(
    temporal_client: Client, settings: Settings, asked: Asked
) -> None:
    plan, item, run = asked
    token = token_for(settings, plan, run, item)
    async with browsing(settings, temporal_client) as browser:
        csrf = csrf_on(await browser.get(f"/decide/{token}"))
        await runs.deny(temporal_client, plan, Choice(step_id="remove", by="bob", digest=item.digest))
        late = await browser.post(f"/decide/{token}", data={"decision": "approve", "csrf": csrf})
        assert late.status_code == 409
        assert "bob" in (await browser.get(f"/decide/{token}")).text


@pytest.mark.slow
async def test_without_a_worker_the_page_says_what_becomes_of_the_decision_and_the_link_stays_good(
    temporal_client: Client, settings: Settings
) -> None:
    options = Options(workspace=str(settings.workspace))
    started = await runs.start(temporal_client, {"steps": [STEP]}, options=options, queue=settings.task_queue)

    async def pending() -> list[Card]:
        return (await runs.brief(temporal_client, started.plan_id)).pending

    async with browsing(settings, temporal_client) as browser:
        async with build(temporal_client, settings, load_tools(()), indexed=True):
            await until(pending, "the step asks")
            token = token_for(settings, started.plan_id, started.run_id, (await pending())[0], person="ann")
            csrf = csrf_on(await browser.get(f"/decide/{token}"))
        said = await browser.post(f"/decide/{token}", data={"decision": "approve", "csrf": csrf})
    assert (said.status_code, "Not decided yet" in said.text, "cannot be used again" in said.text) == (200, True, False)
    assert "takes effect when a worker serves the plan" in said.text
    assert Links(settings).verify(token).person == "ann"


async def test_without_a_server_nothing_is_decided_and_the_link_stays_good(settings: Settings) -> None:
    away = settings.with_flags(temporal={"TEMPORAL_ADDRESS": "127.0.0.1:1"}, server="auto")
    item = Card(step_id="remove", tool="delete_file", kind="approval", version=1, digest="0" * 64)
    token = token_for(away, "p", "run", item)
    async with browsing(away, None) as browser:
        page = await browser.get(f"/decide/{token}")
        assert page.status_code == 503
        links = Links(away)
        assert links.verify(token).person == "ann@example.org"
        for bad in ("x", token + "x", token[:-1]):
            wrong = await browser.get(f"/decide/{bad}")
            assert (wrong.status_code, "LINK_INVALID" in wrong.text) == (410, True)


async def test_a_link_is_not_good_for_another_plan_that_was_given_the_id(
    temporal_client: Client, settings: Settings, asked: Asked
) -> None:
    plan, item, run = asked
    token = token_for(settings, plan, run, item)
    handle = temporal_client.get_workflow_handle(f"plan-{plan}")
    request = {"plan": {"steps": [STEP]}, "options": {"workspace": str(settings.workspace)}}

    async def asks_the_same() -> bool:
        pending = (await runs.brief(temporal_client, plan)).pending
        return [(asks.step_id, asks.digest) for asks in pending] == [(item.step_id, item.digest)]

    async with browsing(settings, temporal_client) as browser:
        form = {"csrf": csrf_on(await browser.get(f"/decide/{token}")), "decision": "approve"}
        await handle.terminate()
        other = await temporal_client.start_workflow(
            "PlanWorkflow", request, id=handle.id, task_queue=settings.task_queue
        )
        await until(asks_the_same, "the other plan asks the same, to the letter")
        for refused in (await browser.get(f"/decide/{token}"), await browser.post(f"/decide/{token}", data=form)):
            assert (refused.status_code, "LINK_INVALID" in refused.text) == (410, True)
        assert (await decision(temporal_client, plan)) is None
        own = token_for(settings, plan, other.first_execution_run_id or "", item)  # the control
        form = {"csrf": csrf_on(await browser.get(f"/decide/{own}")), "decision": "approve"}
        assert (await browser.post(f"/decide/{own}", data=form)).status_code == 200
