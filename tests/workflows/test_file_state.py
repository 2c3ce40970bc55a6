"""A plan's file stamps from step to step, on a real server."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.file_stamps import NOTES_BYTES, stamp_of
from tests.kit.driving import Plans, Started, View, refusals, statuses, step, work


def read(step_id: str = "read", path: str = "x", **more: Any) -> dict[str, Any]:
    """A step that reads a file."""
    return {"id": step_id, "tool": "read_file", "args": {"path": path}, **more}


def edit(old: str, new: str, *needs: str, step_id: str = "edit", path: str = "x", **more: Any) -> dict[str, Any]:
    """A step that edits a file."""
    args = {"path": path, "oldText": old, "newText": new}
    return {"id": step_id, "tool": "edit_file", "args": args, "dependsOn": list(needs), **more}


async def held(plans: Plans, *steps: dict[str, Any]) -> Started:
    """A plan that has read x and waits for an approval before the last step."""
    started = await plans.start([read(), *steps])
    await started.until_asked(steps[-1]["id"])
    return started


async def finished(started: Started, step_id: str = "edit") -> View:
    """Approve the last step; returns the view when the plan has ended."""
    await started.approve(step_id)
    return await started.ended()


@pytest.mark.crosses_runs
async def test_an_edit_after_a_change_from_outside_is_refused_with_a_diff(plans: Plans) -> None:
    path = plans.workspace / "x"
    path.write_text("one\ntwo\n")
    started = await held(plans, edit("two", "2", "read", requiresApproval=True))
    path.write_text("eins\ntwo\n")
    view = await finished(started)
    result = step(view, "edit")["result"]
    assert (view["status"], result["code"]) == ("partial", "CONFLICT")
    for words in ("'x'", "modified since last read", "-one\n+eins", "read_file again"):
        assert words in result["error"]
    assert path.read_text() == "eins\ntwo\n"


@pytest.mark.crosses_runs
async def test_a_touched_file_is_edited_and_the_edit_is_known_to_the_next(plans: Plans) -> None:
    path = plans.workspace / "x"
    path.write_text("one two\n")
    started = await held(
        plans, edit("one", "1", "read", step_id="first"), edit("two", "2", "first", requiresApproval=True)
    )
    path.touch()
    assert (await finished(started))["status"] == "completed"
    assert path.read_text() == "1 2\n"


@pytest.mark.crosses_runs
async def test_a_file_reported_as_changed_must_be_read_again(plans: Plans) -> None:
    (plans.workspace / "x").write_text("one")
    started = await held(plans, edit("one", "two", "read", requiresApproval=True))
    await started.signal("files_changed", {"paths": ["./x", "unknown"], "by": "ann"})
    await started.until_logged("files_changed", "changed by ann: x")
    assert (await started.handle.query("stamps", {"paths": ["x"]}))["x"]["state"] == "stale"
    result = step(await finished(started), "edit")["result"]
    assert (result["code"], "read_file again" in result["error"]) == ("CONFLICT", True)
    assert (plans.workspace / "x").read_text() == "one"


@pytest.mark.crosses_runs
async def test_reading_again_makes_a_stale_file_known(plans: Plans) -> None:
    (plans.workspace / "x").write_text("one")
    again = read("again", dependsOn=["read"], requiresApproval=True)
    started = await held(plans, edit("one", "two", "again"), again)
    await started.signal("files_changed", {"paths": ["x"]})
    assert (await finished(started, "again"))["status"] == "completed"
    assert (plans.workspace / "x").read_text() == "two"


@pytest.mark.parametrize(
    "message", [None, {}, {"paths": []}, {"paths": "x"}, {"paths": [""]}, {"paths": ["x"], "z": 1}]
)
async def test_a_malformed_report_of_changes_is_refused(plans: Plans, message: Any) -> None:
    started = await plans.start([work("gate", requiresApproval=True)])
    await started.until_asked("gate")
    await started.signal("files_changed", message)
    view = await started.until_logged("refused")
    assert "BAD_MESSAGE files_changed" in refusals(view)[0]
    await started.handle.cancel()


@pytest.mark.crosses_runs
async def test_parallel_edits_of_one_file_are_all_there(plans: Plans) -> None:
    (plans.workspace / "x").write_text("".join(f"<{number}>" for number in range(8)))
    edits = [edit(f"<{number}>", f"[{number}]", "read", step_id=f"s{number}") for number in range(8)]
    view = await plans.run([read(), *edits])
    assert set(statuses(view).values()) == {"completed"}
    assert (plans.workspace / "x").read_text() == "".join(f"[{number}]" for number in range(8))


async def test_two_plans_on_one_file_never_overwrite_each_other_unseen(plans: Plans) -> None:
    (plans.workspace / "x").write_text("a b")
    first = await held(plans, edit("a", "1", "read", requiresApproval=True))
    second = await held(plans, edit("b", "2", "read", requiresApproval=True))
    assert (await finished(first))["status"] == "completed"
    assert step(await finished(second), "edit")["result"]["code"] == "CONFLICT"
    assert (plans.workspace / "x").read_text() == "1 b"


@pytest.mark.crosses_runs
async def test_agents_md_are_listed_with_the_step_that_brought_them_in(plans: Plans) -> None:
    (plans.workspace / "src").mkdir()
    (plans.workspace / "src" / "x").write_text("x")
    (plans.workspace / "agents.md").write_text("outer")
    (plans.workspace / "src" / "AGENTS.md").write_text("inner" * 3_000)
    (plans.workspace / "src" / "agents.md").write_text("not this one")
    view = await plans.run(
        [read("top", "agents.md"), read("a", "src/x", dependsOn=["top"]), read("b", "src/x", dependsOn=["a"])]
    )
    assert view["agentsMd"] == [
        {"path": "agents.md", "bytes": 5, "stepId": "top"},
        {"path": "src/AGENTS.md", "bytes": 15_000, "stepId": "a"},
    ]
    assert "only one per directory is used" in step(view, "a")["warnings"][0]
    assert "warnings" not in step(view, "b")
    assert [entry["stepId"] for entry in view["log"] if entry["kind"] == "warning"] == ["a"]


async def test_reads_at_the_same_time_take_in_no_more_agents_md_than_one_session_may(plans: Plans) -> None:
    names = ["a", "b", "c"]
    for name in names:
        (plans.workspace / name).mkdir()
        (plans.workspace / name / "x").write_text("x")
        (plans.workspace / name / "AGENTS.md").write_text(name * 20_000)
    view = await plans.run([read(name, f"{name}/x") for name in names])
    assert statuses(view) == dict.fromkeys(names, "completed")
    assert 20_000 <= sum(note["bytes"] for note in view["agentsMd"]) <= NOTES_BYTES
    assert [entry["kind"] for entry in view["log"] if entry["kind"] == "warning"]


@pytest.mark.crosses_runs
async def test_the_run_answers_how_it_last_saw_its_files(plans: Plans) -> None:
    (plans.workspace / "x").write_text("one")
    started = await held(plans, edit("one", "two", "read", requiresApproval=True))
    assert await started.handle.query("stamps") == {"x": stamp_of(b"one").model_dump(mode="json")}
    assert await started.handle.query("stamps", {"paths": ["y"]}) == {}
    await finished(started)
    assert await started.handle.query("stamps") == {"x": stamp_of(b"two").model_dump(mode="json")}
