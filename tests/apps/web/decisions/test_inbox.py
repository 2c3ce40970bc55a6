"""The inbox: everything that waits over all plans, watched once for all viewers, and nothing decided unread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from temporalio.client import Client

from plansurvive.apps.web.common.rendering import environment
from plansurvive.apps.web.common.service import Service
from plansurvive.apps.web.decisions.cards import Shown, groups
from plansurvive.apps.web.decisions.inbox import Inbox, Waiting
from plansurvive.apps.web.decisions.live import events
from plansurvive.apps.web.decisions.routes import decision_url
from plansurvive.client import runs
from plansurvive.client.decide.here import diffs
from plansurvive.client.decisions import Choice
from plansurvive.client.feature import views_of_features
from plansurvive.client.listing import list_plans
from plansurvive.client.verbs.pending import Pending
from plansurvive.plans.in_views import Viewer
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.run import Options
from plansurvive.plans.step_state import Consent
from plansurvive.plans.views.steps.call_text import CALL_CHARACTERS
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.settings import Settings
from tests.apps.web.decisions.conftest import Ask
from tests.apps.web.decisions.page import Page, seen
from tests.apps.web.decisions.test_decide import GATE, decided, writing
from tests.kit.driving import terminated
from tests.kit.waiting import until

QUESTION = {"id": "name", "tool": "ask", "args": {"question": "What is its name?", "default": "Rex", "timeout": 900}}


def item(step: str = "s", plan: str = "p", kind: str = "approval", **more: Any) -> Pending:
    return Pending.of(views_of_features(), plan_id=plan, step_id=step, kind=kind, **{"tool": "note", **more})


@pytest.mark.parametrize(("title", "links"), [("", "p"), ("Ship", "Ship"), ("Fix it, " * 30, "Fix it, " * 9 + "Fix…")])
def test_a_card_names_its_plan_once_and_shortly(title: str, links: str) -> None:
    module = environment().get_template("_decision.html").make_module({"barred": lambda _: "use `plan keys`"})
    head = str(module.card_head(item(title=title), linked=False))  # type: ignore[attr-defined]
    assert f'<a href="/plans/p">{links}</a>' in head
    assert ('<span class="id">p</span>' in head) == bool(title)
    assert "use <code>plan keys</code>" in head


def test_items_of_a_loop_stand_together_where_the_oldest_of_them_stands() -> None:
    cards = [
        Shown(item(name, plan)) for name, plan in (("a[1]", "p"), ("b", "p"), ("a[2]", "p"), ("a[1]", "q"), ("b", "q"))
    ]
    found = [(group.pattern, [each.card.step_id for each in group.cards], group.is_one) for group in groups(cards)]
    assert found == [
        ("a[*]", ["a[1]", "a[2]"], False), ("b", ["b"], True), ("a[*]", ["a[1]"], True), ("b", ["b"], True),
    ]  # fmt: skip


def test_what_others_must_decide_is_left_out_for_a_person_who_asks_for_their_own() -> None:
    rule = Consent(rule="r", by=["bob"], missing=1, people={"bob": "", "bob@example.org": ""})
    waiting = Waiting((item("a"), item("b", consents=[rule]), item("c", kind="question", args={"to": "bob"})))
    people = (Viewer("ann"), Viewer("Bob@example.org"), Viewer("bob"), Viewer("bob", is_proven=False))
    kept = [[each.step_id for each in waiting.of(viewer).decisions] for viewer in people]
    assert kept == [["a"], ["a", "b"], ["a", "b", "c"], ["a", "c"]]


def test_a_call_that_is_too_long_or_not_known_whole_is_not_decided_among_others() -> None:
    large = {"big": LargeValue(sha256="ab" * 32, bytes=70_000, preview="x")}
    assert Shown(item(args={"text": "x" * CALL_CHARACTERS})).is_long
    assert Shown(item(args={}, large=large)).is_long
    assert not Shown(item(args={}, large=large, values={"big": "whole"})).is_long
    assert "70,000 bytes" in item(args={}, large=large).unseen[0]


def test_another_call_of_the_same_step_is_another_card() -> None:
    keys = [item(digest=digest).key for digest in ("ab" * 32, "cd" * 32)]
    assert keys[0] != keys[1]
    assert item("x", "y", digest="ab" * 32).key != keys[0]


async def test_ten_viewers_share_one_watcher_and_add_nothing_to_a_history(
    ask: Ask, service: Service, temporal_client: Client
) -> None:
    plan = await ask(GATE, {**GATE, "id": "next", "args": {"seconds": 0.5}}, waits="next")
    handle = temporal_client.get_workflow_handle(f"plan-{plan}")
    before = (await handle.describe()).history_length
    inbox = Inbox(service)
    followers = [inbox.follow() for _ in range(10)]

    async def first() -> list[Waiting]:
        return [await anext(each) for each in followers]

    found = await first()
    while not {"gate", "next"} <= {each.step_id for each in found[0].decisions if each.plan_id == plan}:
        found = await first()
    assert len({id(each) for each in found}) == 1
    assert (await handle.describe()).history_length == before
    await runs.approve(temporal_client, plan, Choice(step_id="gate", by="bob"))
    gone: dict[str, str] = {}
    while "step 'gate' approved by bob" not in gone.values():
        later = await first()
        gone = later[0].gone
    assert len({id(each) for each in later}) == 1
    for follower in followers:
        await follower.aclose()


async def test_the_live_channel_says_what_waits_at_once(ask: Ask, service: Service) -> None:
    plan = await ask(GATE)
    inbox = Inbox(service)
    channel = events(inbox)
    text = (await anext(channel)).decode()
    assert text.startswith("event: waiting\ndata: {")
    (mine,) = [each for each in (await inbox.now()).decisions if each.plan_id == plan]
    assert mine.key in text
    await channel.aclose()  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_when_the_server_is_away_the_watcher_says_so_and_keeps_what_it_knew(
    ask: Ask, service: Service, settings: Settings
) -> None:
    plan = await ask(GATE)
    inbox = Inbox(service)
    follower = inbox.follow()
    await anext(follower)
    connection, service.connection = service.connection, None
    service.settings = settings.with_flags(temporal={"TEMPORAL_ADDRESS": "127.0.0.1:1"})
    found = await anext(follower)
    while not found.problem:
        found = await anext(follower)
    assert plan in {each.plan_id for each in found.decisions}
    service.connection = connection
    while found.problem:
        found = await anext(follower)
    await follower.aclose()


async def test_only_plans_that_may_await_a_person_are_asked_for(
    ask: Ask, temporal_client: Client, queue: str, workspace: Path
) -> None:
    asking = await ask(GATE)
    nap = {"title": "Nap", "steps": [{"id": "nap", "tool": "sleep", "args": {"seconds": 3600}}]}
    options = Options(workspace=str(workspace))
    busy = await runs.start(temporal_client, nap, options=options, queue=queue)
    draft = await runs.start(temporal_client, nap, options=options.model_copy(update={"review": True}), queue=queue)

    mine = {asking, busy.plan_id, draft.plan_id}

    async def listed(wanted: set[str], *, awaiting: bool) -> bool:
        plans = list_plans(temporal_client, running=True, awaiting=awaiting)
        return mine & {each.plan_id async for each in plans} == wanted

    await until(lambda: listed(mine, awaiting=False), "all are listed")
    await until(lambda: listed({asking, draft.plan_id}, awaiting=True), "only those that may wait")
    for started in (busy, draft):
        await terminated(temporal_client, started.workflow_id)


async def test_a_question_with_a_default_says_so_and_takes_free_text(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    plan = await ask(QUESTION)
    page = await seen(ann, "/inbox")
    assert "What is its name?" in page.text
    assert "the default counts: Rex" in page.text
    form = page.form(f"/plans/{plan}/answer")
    assert form.value("f") == "Rex"
    empty = await form.send(ann, "Answer", f="  ")
    assert empty.status_code == 422
    assert "is not a text" in Page(empty.text).text
    assert (await form.send(ann, "Answer", f="Bello\nthe dog")).status_code == 303
    step = await until(lambda: completed(temporal_client, plan), "it is answered")
    assert (step.result.value, step.answer.by) == ("Bello\nthe dog", "ann")
    again = await form.send(ann, "Answer", f="Hasso")
    assert again.status_code == 409
    assert "step 'name' answered by ann" in Page(again.text).text


async def completed(client: Client, plan: str) -> Any:
    step = (await runs.show(client, plan)).step("name")
    return step if step and step.result and step.answer else None


async def test_an_answer_to_another_question_is_not_taken(ask: Ask, ann: httpx.AsyncClient) -> None:
    plan = await ask({"id": "pick", "tool": "ask", "args": {"question": "Which?", "choices": ["a", 2, True]}})
    form = (await seen(ann, decision_url(plan, "pick"))).form("/answer")
    form.fields = [(name, "0" * 64 if name == "digest" else value) for name, value in form.fields]
    answer = await form.send(ann, "Answer", f='"a"')
    assert answer.status_code == 409
    assert "it asks something else now, which is shown here" in Page(answer.text).text
    wrong = await Page(answer.text).form("/answer").send(ann, "Answer", f='"b"')
    assert wrong.status_code == 422
    assert "is not one of the choices" in Page(wrong.text).text
    assert (await Page(wrong.text).form("/answer").send(ann, "Answer", f="2")).status_code == 303


async def test_a_plan_that_awaits_its_review_is_in_the_inbox(
    ann: httpx.AsyncClient, worker: Any, temporal_client: Client, queue: str, workspace: Path
) -> None:
    plan = {"title": "Read me first", "steps": [GATE]}
    options = Options(workspace=str(workspace), review=True)
    started = await runs.start(temporal_client, plan, options=options, queue=queue)

    async def shown() -> bool:
        return f'href="/plans/{started.plan_id}/draft"' in (await seen(ann, "/inbox")).html

    await until(shown, "the review is shown")
    await terminated(temporal_client, started.workflow_id)


async def test_a_file_on_another_machine_is_not_guessed_at(service: Service, ask: Ask, workspace: Path) -> None:
    (workspace / "a.txt").write_text("here")
    plan = await ask(writing("a.txt", "there"))
    assert service.connection is not None
    remote = Connection(service.connection.client, "temporal.example.org:7233", Origin.CONFIGURED)
    (asked,) = [each async for each in runs.pending(remote.client, plan=plan)]
    (found,) = await diffs(remote, service.settings, plan, [asked])
    assert found is not None
    assert (found.kind, found.lines) == ("unknown", ())
    assert "is on the machine of the plan's worker" in found.note
    assert "the run has neither read nor written it so far" in found.note
    (local,) = await diffs(service.connection, service.settings, plan, [asked])
    assert local is not None
    assert local.kind == "changed"


async def test_a_step_of_a_child_plan_is_decided_in_the_inbox_of_all(
    worker: Any, ann: httpx.AsyncClient, temporal_client: Client, queue: str, workspace: Path
) -> None:
    child = f"child-{queue}"
    step = {"id": "sub", "tool": "plan", "args": {"steps": [GATE], "id": child}}
    options = Options(workspace=str(workspace))
    parent = await runs.start(temporal_client, {"steps": [step]}, options=options, queue=queue)

    async def shown() -> Page | None:
        page = await seen(ann, "/inbox")
        return page if f"/plans/{child}/approve" in page.html else None

    page = await until(shown, "the child's step is shown")
    assert (await page.form(f"/plans/{child}/approve").send(ann, "Approve")).status_code == 303
    assert (await decided(temporal_client, child, "gate")).by == "ann"
    await terminated(temporal_client, parent.workflow_id)
