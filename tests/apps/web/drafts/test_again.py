"""Resume, rerun and undo on the page: what would happen is shown, and then happens as the command would do it."""

from __future__ import annotations

from pathlib import Path

from temporalio.worker import Worker

from plansurvive.client import runs
from tests.apps.web.visiting import WRITE, Start, Visitor
from tests.kit.driving import terminated

FAILS = {"id": "fails", "tool": "read_file", "args": {"path": "missing.txt"}, "retry": {"attempts": 1}}


async def test_a_failed_plan_is_resumed_with_another_argument(
    visitor: Visitor, start: Start, worker: Worker, workspace: Path
) -> None:
    plan = await start(WRITE, {**FAILS, "dependsOn": ["write"]}, review=False)
    assert not (await runs.wait(visitor.client, plan)).is_completed
    page = await visitor.get(f"/plans/{plan}/resume")
    assert "Failed, blocked and unstarted steps run" in page
    wrong = await visitor.post(f"/plans/{plan}/resume", {"set": "nonsense"}, 409)
    assert ">\nnonsense</textarea>" in wrong
    answer = await visitor.send(f"/plans/{plan}/resume", {"set": "fails.args.path=a.txt"})
    assert answer.headers["location"] == f"/plans/{plan}-r2"
    assert (await runs.wait(visitor.client, f"{plan}-r2")).is_completed
    assert f"{plan}-r2" in await visitor.get(f"/plans/{plan}/resume")
    refused = await visitor.post(f"/plans/{plan}/resume", {}, 409)
    assert "ALREADY_RESUMED" in refused


async def test_of_a_plan_of_which_every_step_is_done_nothing_is_offered_to_resume(
    visitor: Visitor, start: Start
) -> None:
    plan = await start(WRITE, review=False)
    await runs.wait(visitor.client, plan)
    page = await visitor.get(f"/plans/{plan}/resume")
    assert f'there is nothing to resume. <a href="/plans/{plan}/rerun">' in page
    assert 'name="set"' not in page


async def test_a_step_is_rerun_alone_or_with_what_depends_on_it(visitor: Visitor, start: Start) -> None:
    plan = await start(WRITE, review=False)
    await runs.wait(visitor.client, plan)
    assert 'value="write"' in await visitor.get(f"/plans/{plan}/rerun?step=write")
    for how, expected in (("from", f"{plan}-r2"), ("only", f"{plan}-r3")):
        answer = await visitor.send(f"/plans/{plan}/rerun", {"step": "write", "how": how})
        assert answer.headers["location"] == f"/plans/{expected}"
        assert (await runs.wait(visitor.client, expected)).is_completed
    text = await visitor.post(f"/plans/{plan}/rerun", {"step": "nothing", "how": "from"}, 409)
    assert "UNKNOWN_STEP" in text


async def test_several_steps_are_rerun_at_once_but_only_one_alone(visitor: Visitor, start: Start) -> None:
    others = [{**WRITE, "id": name, "args": {"path": f"{name}.txt", "content": "x"}} for name in ("b", "c")]
    plan = await start(WRITE, *others, review=False)
    await runs.wait(visitor.client, plan)
    typed = {"step": "b", "more": "c\n\n"}
    wrong = await visitor.post(f"/plans/{plan}/rerun", {**typed, "how": "only"}, 409)
    assert ("BAD_USAGE" in wrong, ">\nc\n\n</textarea>" in wrong) == (True, True), wrong
    await visitor.send(f"/plans/{plan}/rerun", {**typed, "how": "from"})
    assert (await runs.wait(visitor.client, f"{plan}-r2")).is_completed
    assert "from 'b' and 'c'" in (await runs.show(visitor.client, f"{plan}-r2")).log[0].text
    assert "BAD_USAGE" in await visitor.post(f"/plans/{plan}/rerun", {"step": " ", "how": "only"}, 409)


async def test_an_undo_is_shown_before_it_is_done(visitor: Visitor, start: Start, workspace: Path) -> None:
    plan = await start(WRITE, review=False)
    await runs.wait(visitor.client, plan)
    would = await visitor.get(f"/plans/{plan}/undo")
    assert "This would be undone" in would
    assert "<li>delete <code>a.txt</code></li>" in would
    assert (workspace / "a.txt").exists()
    text = await visitor.post(f"/plans/{plan}/undo", {"step": ""})
    assert "Undone" in text
    assert not (workspace / "a.txt").exists()
    assert "1 of 1 file</p>" in await visitor.get(f"/plans/{plan}")
    assert "undone" in await visitor.get("/")
    again = await visitor.get(f"/plans/{plan}/undo")
    assert ("Nothing to undo" in again, f"`plan undo {plan}` undid it, " in again) == (True, True), again


async def test_a_file_that_somebody_changed_since_is_left_alone_unless_the_rest_is_wanted(
    visitor: Visitor, start: Start, workspace: Path
) -> None:
    second = {"id": "second", "tool": "write_file", "args": {"path": "b.txt", "content": "two"}}
    plan = await start(WRITE, second, review=False)
    await runs.wait(visitor.client, plan)
    (workspace / "a.txt").write_text("mine now")
    assert "Cannot be restored" in await visitor.get(f"/plans/{plan}/undo")
    await visitor.post(f"/plans/{plan}/undo", {"step": ""})
    assert (workspace / "b.txt").exists()
    await visitor.post(f"/plans/{plan}/undo", {"step": "", "partly": "1"})
    assert (workspace / "a.txt").read_text() == "mine now"
    assert not (workspace / "b.txt").exists()


async def test_the_undo_of_a_step_runs_as_a_plan_of_its_own(visitor: Visitor, start: Start, workspace: Path) -> None:
    undo = {"tool": "write_file", "args": {"path": "undone.txt", "content": "yes"}}
    plan = await start({**WRITE, "undo": undo}, review=False)
    await runs.wait(visitor.client, plan)
    assert "for step <code>write</code>" in await visitor.get(f"/plans/{plan}/undo")
    text = await visitor.post(f"/plans/{plan}/undo", {"step": "", "yes": "1"})
    assert f"{plan}-undo" in text
    assert (await runs.wait(visitor.client, f"{plan}-undo")).is_completed
    assert not (workspace / "a.txt").exists()
    await terminated(visitor.client, f"plan-{plan}-undo")


async def test_an_event_is_sent_to_the_steps_that_wait_for_it(visitor: Visitor, start: Start) -> None:
    plan = await start({"id": "hold", "tool": "wait_for", "args": {"event": "shipped"}}, review=False)
    wrong = await visitor.post(f"/plans/{plan}/event", {"name": "shipped", "data": "{"}, 422)
    assert "The data is not valid JSON" in wrong
    answer = await visitor.send(f"/plans/{plan}/event", {"name": "shipped", "data": '{"by": "post"}'})
    assert answer.headers["location"] == f"/plans/{plan}"
    assert (await runs.wait(visitor.client, plan)).is_completed
