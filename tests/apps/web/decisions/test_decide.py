"""Deciding in a browser without JavaScript: what is shown, what is sent, and what becomes of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from temporalio.client import Client

from plansurvive.apps.web.common.service import Service
from plansurvive.apps.web.decisions.routes import decision_url
from plansurvive.client import runs
from plansurvive.client.access import Role, SecretLink
from plansurvive.client.decisions import Choice
from tests.apps.web.decisions.conftest import Ask
from tests.apps.web.decisions.page import Page, seen
from tests.apps.web.page_client import browsing, secret_link
from tests.client.cli.command import plan as command
from tests.kit.waiting import until

GATE = {"id": "gate", "tool": "sleep", "args": {"seconds": 0}, "requiresApproval": True}
LATER = {"id": "later", "tool": "sleep", "args": {"seconds": 3600}, "dependsOn": ["gate"]}


def writing(path: str, content: str) -> dict[str, Any]:
    return {
        "id": "save", "tool": "write_file", "args": {"path": path, "content": content}, "requiresApproval": True,
        "description": "Save the figures",
    }  # fmt: skip


async def decided(client: Client, plan: str, step: str) -> Any:
    """The decision on a step, once the plan has it."""

    async def look() -> Any:
        found = (await runs.show(client, plan)).step(step)
        return found.decision if found else None

    return await until(look, f"{step} is decided")


async def test_the_inbox_shows_the_whole_call_with_its_diff_and_approves_it(
    ask: Ask, ann: httpx.AsyncClient, workspace: Path, temporal_client: Client
) -> None:
    (workspace / "figures.csv").write_text("q1,10\n\nq2,20\n")
    plan = await ask(writing("figures.csv", "q1,10\n\nq2,21\u200b\n"), title="Quarter <b>")
    page = await seen(ann, "/inbox")
    assert "Quarter <b>" in page.text
    assert "<b>" not in page.html
    assert "-q2,20" in page.text
    assert "+q2,21\\u{200b}" in page.text
    assert "U+200B ZERO WIDTH SPACE: invisible" in page.text
    assert "Approve write_file?" in page.text
    assert "the plan says <code>requiresApproval: true</code>" in page.html
    assert "Started by bob" in page.text
    assert page.text.count("Quarter <b>") == 1, "the plan is named once"
    answer = await page.form(f"/plans/{plan}/approve").send(ann, "Approve", comment="looks right")
    assert (answer.status_code, answer.headers["location"]) == (303, "/inbox")
    found = await decided(temporal_client, plan, "save")
    assert (found.approved, found.by, found.comment) == (True, "ann", "looks right")
    after = await seen(ann, "/inbox")
    assert "step 'save' approved by ann (web): looks right" in after.text
    assert plan not in after.html
    await until(lambda: "21" in (workspace / "figures.csv").read_text(), "the file is written")


async def test_deny_with_a_comment_is_the_other_button_of_the_same_form(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    plan = await ask(GATE, LATER)
    page = await seen(ann, decision_url(plan, "gate"))
    answer = await page.form("/approve").send(ann, "Deny", comment="not today")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/plans/{plan}")
    found = await decided(temporal_client, plan, "gate")
    assert (found.approved, found.by, found.comment) == (False, "ann", "not today")


async def test_a_decision_that_no_call_has_used_is_withdrawn_on_the_page_of_its_step(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    plan = await ask(GATE, LATER)
    await runs.pause(temporal_client, plan)
    await (await seen(ann, decision_url(plan, "gate"))).form("/approve").send(ann, "Approve")
    await decided(temporal_client, plan, "gate")
    page = await seen(ann, f"/plans/{plan}/steps/gate")
    answer = await page.form(f"/plans/{plan}/withdraw").send(ann, "Withdraw")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/plans/{plan}/steps/gate")
    assert "the approval of step 'gate' was withdrawn by ann" in (await seen(ann, answer.headers["location"])).text
    found = (await runs.show(temporal_client, plan)).step("gate")
    assert found is not None
    assert found.decision is None
    assert "Show all" in (await seen(ann, "/inbox?mine=1")).text


async def test_a_decision_about_another_call_is_refused_and_the_present_one_is_shown(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    plan = await ask(writing("a.txt", "old"))
    page = await seen(ann, decision_url(plan, "save"))
    form = page.form("/approve")
    await command_edit(temporal_client, plan, "new")
    answer = await form.send(ann, "Approve", comment="kept")
    assert answer.status_code == 409
    again = Page(answer.text)
    assert "decision is about another call (digest" in again.text
    assert "+new" in again.text
    assert "The call has changed since" in again.text
    assert again.form("/approve").value("comment") == "kept"
    assert (await runs.show(temporal_client, plan)).step("save").decision is None  # type: ignore[union-attr]
    assert (await again.form("/approve").send(ann, "Approve")).status_code == 303
    assert (await decided(temporal_client, plan, "save")).approved


async def command_edit(client: Client, plan: str, content: str) -> None:
    """Change what the step would write while it asks, and wait until it asks for that."""
    from plansurvive.plans.editing.edits import SetField

    await runs.edit(client, plan, [SetField(op="set", step_id="save", path="args.content", value=content)], by="eve")

    async def asks() -> bool:
        return any(item.args["content"] == content for item in (await runs.brief(client, plan)).pending)

    await until(asks, "it asks for the new call")


@pytest.mark.parametrize("missing", ["digest", "step", "csrf"])
async def test_a_form_that_does_not_say_what_it_decides_decides_nothing(
    missing: str, ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    plan = await ask(GATE)
    form = (await seen(ann, decision_url(plan, "gate"))).form("/approve")
    form.fields = [(name, value) for name, value in form.fields if name not in (missing, "version")]
    answer = await form.send(ann, "Approve")
    assert answer.status_code in (400, 403, 409), answer.text
    found = (await runs.show(temporal_client, plan)).step("gate")
    assert found is not None
    assert found.decision is None


async def test_other_arguments_that_do_not_fit_are_refused_at_their_field_with_what_was_typed(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    plan = await ask({**GATE, "args": {"seconds": 3600}})
    form = (await seen(ann, decision_url(plan, "gate"))).form("/approve", 1)
    assert form.value("a.seconds") == "3600"
    refused = await form.send(ann, "Show", a__seconds="soon", comment="quick")
    assert refused.status_code == 422
    again = Page(refused.text)
    assert "'soon' is not a number" in again.text
    assert again.form("/approve", 1).value("a.seconds") == "soon"
    assert again.form("/approve", 1).value("comment") == "quick"
    shown = Page((await again.form("/approve", 1).send(ann, "Show", a__seconds="0")).text)
    assert (await shown.form("/approve").send(ann, "Approve exactly")).status_code == 303
    found = await decided(temporal_client, plan, "gate")
    assert (found.approved, found.changed_args) == (True, True)


async def test_other_arguments_are_typed_into_the_form_of_the_tool_and_shown_before_they_are_final(
    ask: Ask, ann: httpx.AsyncClient, workspace: Path, temporal_client: Client
) -> None:
    (workspace / "a.txt").write_text("first\n")
    plan = await ask(writing("a.txt", "second\n"))
    form = (await seen(ann, decision_url(plan, "save"))).form("/approve", 1)
    same = await form.send(ann, "Show")
    assert (same.status_code, "these are the arguments of the call" in Page(same.text).text) == (422, True)
    shown = await form.send(ann, "Show", a__content="third \u200b<b>\n", comment="better")
    page = Page(shown.text)
    assert (shown.status_code, page.form("/approve").value("comment")) == (200, "better")
    for text in ("Nothing is approved yet", "third \\u{200b}<b>", "-first", "+third", "U+200B"):
        assert text in page.text, text
    assert "<b>" not in page.html
    assert (await runs.show(temporal_client, plan)).step("save").decision is None  # type: ignore[union-attr]
    back = Page((await page.form("/approve").send(ann, "Change it")).text)
    assert "third" in back.form("/approve", 1).value("a.content")
    assert (await page.form("/approve").send(ann, "Approve exactly")).status_code == 303
    found = await decided(temporal_client, plan, "save")
    assert (found.approved, found.comment) == (True, "better")
    await until(lambda: (workspace / "a.txt").read_text() == "third \u200b<b>\n", "what was shown is written")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_other_arguments_for_a_call_that_changed_meanwhile_are_not_approved(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    plan = await ask(writing("b.txt", "old"))
    form = (await seen(ann, decision_url(plan, "save"))).form("/approve", 1)
    final = Page((await form.send(ann, "Show", a__content="mine")).text).form("/approve")
    unreadable = await final.send(ann, "Approve", final="[1")
    assert (unreadable.status_code, "which arguments were shown" in Page(unreadable.text).text) == (409, True)
    await command_edit(temporal_client, plan, "new")
    late = await final.send(ann, "Approve exactly")
    assert (late.status_code, "asks something else now" in Page(late.text).text) == (409, True)
    assert (await runs.show(temporal_client, plan)).step("save").decision is None  # type: ignore[union-attr]


async def test_always_approves_the_tool_for_the_rest_of_the_run_and_says_so(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    commands = [{"id": f"c{number}", "tool": "run_command", "args": {"command": "true"}} for number in (1, 2)]
    plan = await ask(*commands, waits="c1")
    page = await seen(ann, decision_url(plan, "c1"))
    assert "every call of run_command in" in page.text
    form = page.form("/approve")
    assert not [name for name, _ in form.fields if name == "always"]
    assert (await form.send(ann, "Approve", always="1")).status_code == 303
    other = await decided(temporal_client, plan, "c2")
    assert (other.approved, other.remembered) == (True, True)


async def test_items_of_a_loop_are_decided_together_and_only_those_that_were_shown(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    loop = {**GATE, "id": "each", "args": {"seconds": "$item"}, "forEach": {"items": [0.001, 0.002, 0.003]}}
    plan = await ask(loop, waits="each[*]")
    await until(lambda: asked_count(temporal_client, plan, 3), "all items ask")
    page = await seen(ann, "/inbox")
    assert "Approve sleep for 3 items?" in page.text
    form = page.form(f"/plans/{plan}/approve")
    assert form.value("step") == "each[*]"
    digests = [value for name, value in form.fields if name == "digests"]
    assert len(digests) == 3
    form.fields = [pair for pair in form.fields if pair != ("digests", digests[2])]
    assert (await form.send(ann, "Approve these")).status_code == 303
    assert "2 items of 'each[*]' approved" in (await seen(ann, "/inbox")).text
    (left,) = (await runs.brief(temporal_client, plan)).pending
    assert left.digest == digests[2]


async def asked_count(client: Client, plan: str, number: int) -> bool:
    return len((await runs.brief(client, plan)).pending) == number


async def test_two_people_decide_in_the_same_moment_one_wins_and_the_other_is_told_who(
    ask: Ask, ann: httpx.AsyncClient, environ: dict[str, str], temporal_client: Client
) -> None:
    """On the web page and with the command, at once, and each once first."""
    plan = await ask(*({**GATE, "id": name, "args": {"seconds": number / 1_000}} for number, name in enumerate("xyz")))
    pages = {name: (await seen(ann, decision_url(plan, name))).form("/approve") for name in "xyz"}
    both = await asyncio.gather(pages["x"].send(ann, "Approve"), command(environ, "deny", plan, "x", "--by", "carl"))
    answer, ended = both
    found = await decided(temporal_client, plan, "x")
    if found.by == "ann":
        assert (answer.status_code, ended.code) == (303, 2)
        assert "already approved by ann" in ended.err
    else:
        assert (found.by, answer.status_code, ended.code) == ("carl", 409, 0)
        assert "already denied by carl" in Page(answer.text).text
    assert (await command(environ, "deny", plan, "y", "--by", "carl")).code == 0
    second = await pages["y"].send(ann, "Approve")
    assert second.status_code == 409
    assert "'y' was already denied by carl" in Page(second.text).text
    assert (await pages["z"].send(ann, "Approve")).status_code == 303
    late = await command(environ, "approve", plan, "z", "--by", "carl")
    assert late.code == 2
    assert "step 'z' was already approved by ann" in late.err


async def test_a_page_of_a_step_that_asks_nothing_says_who_decided(
    ask: Ask, ann: httpx.AsyncClient, temporal_client: Client
) -> None:
    plan = await ask(GATE, LATER)
    await runs.approve(temporal_client, plan, Choice(step_id="gate", by="Dora"))
    page = await seen(ann, decision_url(plan, "gate"))
    assert "Step 'gate' approved by Dora." in page.text
    assert not [form for form in page.forms if form.method == "post" and form.action != "/logout"]
    assert "Step later of plan" in (await seen(ann, decision_url(plan, "later"))).text
    assert (await ann.get(decision_url("no-such-plan", "x"))).status_code == 404


async def test_what_a_call_with_a_hostile_text_shows_is_text(ask: Ask, ann: httpx.AsyncClient, workspace: Path) -> None:
    evil = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\"'{{7*7}}\u202e"
    step = {"id": "run", "tool": "run_command", "args": {"command": f"echo '{evil}'"}, "description": evil}
    plan = await ask(step, title=evil)
    for path in ("/inbox", decision_url(plan, "run")):
        page = await seen(ann, path)
        assert "<script>alert" not in page.html
        assert "<img" not in page.html
        assert "\u202e" not in page.html.replace("\\u{202e}", "")
        assert "\\u{202e}" in page.text
        assert page.html.count("{{7*7}}") >= 2


async def test_a_viewer_may_look_and_not_decide(ask: Ask, service: Service, temporal_client: Client) -> None:
    plan = await ask(GATE)
    async with browsing(service) as ann:
        form = (await seen(ann, decision_url(plan, "gate"))).form("/approve")
    async with browsing(as_viewer(service)) as viewer:
        page = await seen(viewer, decision_url(plan, "gate"))
        assert "Deciding needs the role approver" in page.text
        assert not [form for form in page.forms if form.method == "post" and form.action != "/logout"]
        answer = await form.send(viewer, "Approve")
        assert answer.status_code in (400, 403)


def as_viewer(service: Service) -> Service:
    link = secret_link(service)
    return replace(service, access=SecretLink(link.secret, link.host, link.user, role=Role.VIEWER))
