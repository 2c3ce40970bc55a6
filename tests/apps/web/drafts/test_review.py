"""The review of a plan on the page: what it shows, each edit by a form, and what happens when two people edit."""

from __future__ import annotations

import re

import pytest
from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.client import runs
from plansurvive.plans.editing.edits import SetField
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import browsing
from tests.apps.web.visiting import LIST, READ, WRITE, Start, Visitor, at, service_on, working
from tests.kit.driving import terminated
from tests.kit.waiting import until

HOSTILE = "<img src=x>\u202e{{7*7}}"


async def test_the_review_shows_steps_in_order_with_arguments_and_what_will_ask(visitor: Visitor, start: Start) -> None:
    risky = {"id": "remove", "tool": "run_command", "args": {"command": "rm a.txt"}, "dependsOn": ["write"]}
    plan = await start(WRITE, risky, {**LIST, "requiresApproval": True})
    text = await visitor.get(f"/plans/{plan}/draft")
    assert re.findall(r'step-id">(\w+)<', text) == ["write", "remove", "list"]
    assert "2 steps will ask a person" in text
    assert "the plan says <code>requiresApproval: true</code>" in text
    assert "run_command needs approval by default" in text
    assert f'action="/plans/{plan}/begin"' in text


async def test_a_waiver_that_an_edit_adds_is_not_taken_for_one(visitor: Visitor, start: Start) -> None:
    plan = await start({"id": "run", "tool": "run_command", "args": {"command": "true"}, "requiresApproval": False})
    assert "No step will ask a person" in await visitor.get(f"/plans/{plan}/draft")
    edit = SetField(op="set", step_id="run", path="args.command", value="false")
    await runs.edit(visitor.client, plan, [edit])
    assert "1 step will ask a person" in await visitor.get(f"/plans/{plan}/draft")


async def test_a_step_is_edited_by_its_form_and_the_difference_shown(visitor: Visitor, start: Start) -> None:
    plan = await start()
    version = await visitor.saw(plan)
    form = {"version": version, "field.args.content": "two\r\nlines", "field.approval": '"always"', "why": "clearer"}
    text = await visitor.post(at(plan, "write"), {**form, "field.more": "timeout: 9"})
    step = (await visitor.view(plan)).step("write")
    assert step is not None
    assert (step.args["content"], step.timeout, step.requires_approval) == ("two\nlines", 9.0, True)
    assert "Saved as version 2." in text
    assert f"What changed since version {version}" in text
    assert "(web)" in text.partition("What changed since")[2]
    assert "clearer" in text


async def test_a_field_that_is_no_value_is_said_at_the_field_and_nothing_typed_is_lost(
    visitor: Visitor, start: Start
) -> None:
    plan = await start()
    form = {"version": 1, "field.args.content": "kept text", "field.more": "nonsense: 1"}
    text = await visitor.post(at(plan, "write"), form, 422)
    assert "'nonsense' is not a field that belongs here" in text
    assert "kept text" in text
    assert (await visitor.view(plan)).version == 1


async def test_an_edit_that_would_break_the_plan_is_refused_with_its_problems(visitor: Visitor, start: Start) -> None:
    plan = await start()
    text = await visitor.post(at(plan, "read"), {"version": 1, "field.dependsOn": "wrte"}, 409)
    assert "Nothing was changed: the plan would not be valid." in text
    assert "wrte" in text
    text = await visitor.post(f"/plans/{plan}/draft/remove", {"version": 1, "step": "write"}, 409)
    assert "Nothing was changed: the plan would not be valid." in text
    assert "cannot be removed, as step" in text


async def test_when_somebody_else_was_first_the_form_shows_what_changed_and_keeps_what_was_typed(
    visitor: Visitor, start: Start
) -> None:
    plan = await start()
    assert await visitor.saw(plan) == 1
    theirs = [SetField(op="set", step_id="write", path="args.path", value="b.txt")]
    theirs.append(SetField(op="set", step_id="write", path="args.content", value="theirs"))
    await runs.edit(visitor.client, plan, theirs, by="bob", why="another name")
    mine = {"version": 1, "field.args.path": "a.txt", "field.args.content": "mine"}
    text = await visitor.post(at(plan, "write"), mine, 409)
    assert "Not saved: the plan is at version 2 now" in text
    assert "by bob" in text
    assert "another name" in text
    assert ">\nmine</textarea>" in text, "what was typed"
    assert ">\nb.txt</textarea>" in text, "what nobody typed takes the new value"
    assert "Also changed by somebody else" in text
    await visitor.post(at(plan, "write"), {**mine, "version": 2, "field.args.path": "b.txt"})
    step = (await visitor.view(plan)).step("write")
    assert step is not None
    assert step.args == {"path": "b.txt", "content": "mine"}


@pytest.mark.slow
@pytest.mark.in_turn
async def test_steps_are_added_moved_skipped_unskipped_and_removed(visitor: Visitor, start: Start) -> None:
    plan = await start()
    page = await visitor.get(f"/plans/{plan}/draft/add?tool=list_directory")
    assert 'value="step_1"' in page
    draft = f"/plans/{plan}/draft"
    fields = {"tool": "list_directory", "place": "after write", "field.id": "look", "field.args.path": "."}
    await visitor.post(f"{draft}/add", {"version": 1, **fields})
    assert await visitor.ids(plan) == ["write", "look", "read", "list"]
    text = "id: block\nsteps:\n  - {id: inner, tool: list_directory}"
    await visitor.post(f"{draft}/add", {"version": 2, "place": "before write", "text": text})
    assert await visitor.ids(plan) == ["block", "write", "look", "read", "list"]
    await visitor.post(f"{draft}/move", {"version": 3, "step": "list", "after": "write"})
    assert await visitor.ids(plan) == ["block", "write", "list", "look", "read"]
    await visitor.post(f"{draft}/skip", {"version": 4, "step": "list", "why": "not today"})
    assert "Do not skip" in await visitor.post(f"{draft}/skip", {"version": 5, "step": "look"})
    await visitor.post(f"{draft}/unskip", {"version": 6, "step": "list"})
    await visitor.post(f"{draft}/remove", {"version": 7, "step": "look"})
    assert await visitor.ids(plan) == ["block", "write", "list", "read"]
    await visitor.post(at(plan, "block.inner"), {"version": 8, "field.args.path": "sub"})
    await visitor.post(f"{draft}/set", {"version": 9, "step": "", "path": "title", "value": "Better"})
    view = await visitor.view(plan)
    assert (view.title, (view.steps[0].steps or [])[0].args) == ("Better", {"path": "sub"})
    assert {change.by for change in view.changes} == {"ann"}


async def test_a_button_of_an_older_page_does_nothing_and_says_what_changed(visitor: Visitor, start: Start) -> None:
    plan = await start()
    await visitor.saw(plan)
    await runs.edit(visitor.client, plan, [SetField(op="set", step_id="list", path="notes", value="x")], by="bob")
    forms: list[tuple[str, dict[str, str]]] = [("draft/remove", {"step": "list"}), ("begin", {})]
    for path, fields in [*forms, ("regenerate", {"feedback": "keep me"})]:
        text = await visitor.post(f"/plans/{plan}/{path}", {"version": 1, **fields}, 409)
        assert "What changed since version 1" in text, path
        assert "by bob" in text
        assert "keep me" in text or not fields.get("feedback")
    assert (await visitor.view(plan)).status == "review"


async def test_a_plan_is_begun(visitor: Visitor, start: Start) -> None:
    plan = await start(LIST)
    answer = await visitor.send(f"/plans/{plan}/begin", {"version": 1})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/plans/{plan}")
    assert (await runs.wait(visitor.client, plan)).is_completed
    assert "The plan is completed" not in await visitor.get(f"/plans/{plan}/draft")


async def test_what_a_plan_says_cannot_act_on_the_page(visitor: Visitor, start: Start) -> None:
    plan = await start({**WRITE, "description": HOSTILE, "args": {"path": HOSTILE, "content": HOSTILE}}, title=HOSTILE)
    for path in (f"/plans/{plan}/draft", at(plan, "write")):
        raw = (await visitor.browser.get(path)).text
        assert "<img" not in raw
        assert "\u202e" not in raw
        assert "{{7*7}}" in raw


async def test_regeneration_waits_for_the_llm_and_shows_what_is_different(
    server: Server, temporal_client: Client, settings: Settings, start_unserved: Start
) -> None:
    better = {"title": "Notes", "steps": [{**WRITE, "args": {"path": "a.txt", "content": "better"}}, LIST]}
    with ScriptedLlm(Script.of([{"reply": {"json": better}}, {"reply": {"status": 400}, "times": 0}])) as llm:
        asking = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with working(temporal_client, asking):
            plan = await start_unserved(WRITE, READ, LIST)
            service = service_on(server, asking, temporal_client)
            async with browsing(service) as browser:
                ann = Visitor(service, browser, temporal_client)

                async def shows(url: str, text: str) -> bool:
                    return text in await ann.get(url, 200)

                await ann.post(f"/plans/{plan}/regenerate", {"version": 1, "feedback": "Say it better"})
                url = f"/plans/{plan}/draft?since=1"
                await until(lambda: shows(url, "What changed since version 1"), "the plan that the LLM revised")
                text = await ann.get(url)
                assert "Say it better" in text
                assert "1 removed" in text
                assert "better" in text
                await ann.post(f"/plans/{plan}/regenerate", {"version": 2, "feedback": "Once more, please"})
                await until(lambda: shows(f"/plans/{plan}/draft", "LLM_"), "why the LLM did not revise it")
                assert "Once more, please</textarea>" in await ann.get(f"/plans/{plan}/draft")


async def test_a_single_item_of_a_running_loop_is_edited_by_its_form(visitor: Visitor, start: Start) -> None:
    inner = {**WRITE, "args": {"path": "{{item}}.txt", "content": "x"}, "requiresApproval": True}
    plan = await start({"id": "each", "forEach": ["a/b", "c"], "steps": [inner]}, review=False)

    async def asks() -> list[str]:
        return [item.step_id for item in (await visitor.view(plan)).pending]

    async def both_ask() -> bool:
        return len(await asks()) == 2

    await until(both_ask, "both items ask")
    first = sorted(await asks())[0]
    page = await visitor.get(at(plan, first))
    assert "{{item}}.txt" in page
    await visitor.post(at(plan, first), {"version": 1, "field.args.content": "only here"})
    pending = {item.step_id: item.args["content"] for item in (await visitor.view(plan)).pending}
    assert sorted(pending.values()) == ["only here", "x"]
    assert pending[first] == "only here"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_problems_of_a_draft_stand_at_its_steps_and_it_cannot_be_begun(
    server: Server, temporal_client: Client, settings: Settings
) -> None:
    wrong = {"title": "Wrong", "steps": [LIST, {**WRITE, "id": "later", "dependsOn": ["nothing"]}]}
    with ScriptedLlm(Script.of([{"reply": {"json": wrong}, "times": 0}])) as llm:
        asking = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with working(temporal_client, asking):
            service = service_on(server, asking, temporal_client)
            async with browsing(service) as browser:
                ann = Visitor(service, browser, temporal_client)
                answer = await ann.send("/start/request", {"request": "something wrong"})
                plan = answer.headers["location"].split("/")[2]

                async def is_written() -> bool:
                    return (await ann.view(plan)).status != "draft"

                await until(is_written, "the LLM has given up")
                text = await ann.get(f"/plans/{plan}/draft")
                assert "1 problem to fix before it can start" in text
                assert re.search(r'<li [^>]*class="step [a-z]* faulty">.{0,200}?later', text, re.DOTALL)
                assert '<button class="primary" disabled>Start' in text
                await ann.post(at(plan, "later"), {"version": await ann.saw(plan), "field.dependsOn": "list"})
                assert "to fix before it can start" not in await ann.get(f"/plans/{plan}/draft")
    await terminated(temporal_client, f"plan-{plan}")
