"""`plan list`: how far plans are, what they await since when, and which filter left nothing over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from plansurvive.client.cli.list_plans import awaited, plans_table
from plansurvive.client.cli.terminal.console import SafeConsole
from plansurvive.client.listing import Listed
from plansurvive.client.overview.standing import Standing
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.views.summary import AskedStep
from tests.client.cli.command import plan, written
from tests.kit.waiting import until

NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)
Environ = dict[str, str]


def listed(**fields: Any) -> Listed:
    given: dict[str, Any] = {
        "plan_id": "p",
        "task_id": "p",
        "workflow_id": "plan-p",
        "title": "T",
        "status": PlanStatus.RUNNING,
    }
    more: dict[str, Any] = {"created_at": NOW, "started_at": NOW, "is_open": True, "queue": "plans", "steps": 5}
    return Listed.model_validate(given | more | fields)


def asks(*kinds: str) -> list[AskedStep]:
    since = NOW - timedelta(minutes=4)
    return [AskedStep(plan_id="p", step_id=f"s{at}", kind=kind, since=since) for at, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    ("plan", "standing", "text"),
    [
        (listed(), Standing(), ""),
        (listed(), Standing(asks=asks("approval")), "approval of s0, 4:00"),
        (listed(), Standing(asks=asks("answer", "approval", "approval")), "an answer to s0 and 2 more, 4:00"),
        (listed(), Standing(asks=asks("event")), "an event for s0, 4:00"),
        (listed(), Standing(asks=asks("budget")), "budget for s0, 4:00"),
        (listed(), Standing(is_served=False), "a worker"),
        (listed(queue="nightly"), Standing(is_served=False), "a worker of queue 'nightly'"),
        (listed(), Standing(held_up="waits for its workspace, held by q"), "its workspace, held by q"),
        (listed(), Standing(held_up="waits for its turn", asks=asks("answer")), "an answer to s0, 4:00"),
        (listed(status="review"), Standing(), "begin"),
        (listed(status="paused"), Standing(), "unpause"),
        (listed(is_open=False, status="partial"), Standing(asks=asks("approval")), ""),
    ],
)
def test_what_a_plan_awaits_is_said_with_since_when(plan: Listed, standing: Standing, text: str) -> None:
    assert awaited(plan, standing, NOW) == text


def test_the_table_says_how_far_a_plan_is_as_far_as_that_is_known() -> None:
    done = [listed(), listed(status="completed", is_open=False), listed(status="partial", is_open=False, done=3)]
    cells = [str(cell) for cell in plans_table(done).columns[2].cells]
    assert cells == ["-/5", "5/5", "3/5"]


def test_the_table_says_that_a_plan_rolls_back_or_runs_its_finally() -> None:
    known = {"p": Standing(phase="rollback"), "q": Standing(phase="finally"), "r": Standing()}
    found = [listed(plan_id=name) for name in known]
    assert [str(cell).strip() for cell in plans_table(found, known).columns[1].cells] == [
        "rolling back", "finishing", "running"
    ]  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_status_and_progress_are_whole_in_every_terminal(width: int) -> None:
    failed = listed(plan_id="release-abcdef", status="failed", is_open=False, title="Release " * 20, done=1)
    asking = listed(plan_id="q", title="Resize the photos")
    known = {"q": Standing(asks=asks(*["approval"] * 8), done=0, total=5)}
    file = StringIO()
    console = SafeConsole(width=width, file=file)
    console.print(plans_table([failed, asking], known, console.width))
    rows = file.getvalue().rstrip().splitlines()
    assert len(rows) == 3, "no row continues"
    assert all(text in rows[1] for text in ("release-abcdef", "✗ failed", "1/5"))
    assert all(text in rows[2] for text in ("running", "0/5", "approval of s0 and"))
    assert ", 4:" not in rows[2] or "…" not in rows[2], "half a time is another time"
    assert ("Release" in rows[1]) == (width > 100)
    assert not any(row.endswith(" ") for row in rows), "no blanks in a pipe; on a terminal they fill the column"
    console = SafeConsole(width=width, file=StringIO(), force_terminal=True, color_system=None)
    console.print(plans_table([failed, asking], known, console.width))
    assert any(row.endswith(" ") for row in console.file.getvalue().splitlines()), "the control"  # type: ignore[attr-defined]


def test_the_number_of_what_else_is_awaited_is_whole_where_the_name_of_the_step_is_cut() -> None:
    since = NOW - timedelta(minutes=4)
    name = "picture[photos/2026/summer/beach.json].remove"
    found = [AskedStep(plan_id="p", step_id=each, kind="approval", since=since) for each in (name, "b", "c")]
    console = SafeConsole(width=80, file=StringIO(), force_terminal=True, color_system=None)
    console.print(plans_table([listed()], {"p": Standing(asks=found, done=0, total=5)}, console.width))
    [row] = [each for each in console.file.getvalue().splitlines() if "running" in each]  # type: ignore[attr-defined]
    assert "approval of picture[photos" in row
    assert row.rstrip().endswith("… and 2 more")


def test_a_deadline_has_a_column_if_a_plan_has_one() -> None:
    names = [str(each.header) for each in plans_table([listed()], {"p": Standing()}).columns]
    assert "DEADLINE" not in names
    until = datetime.now(UTC) + timedelta(minutes=10)
    table = plans_table([listed(), listed(plan_id="q")], {"p": Standing(deadline=until), "q": Standing()})
    [column] = [each for each in table.columns if each.header == "DEADLINE"]
    cells = [str(each) for each in column.cells]
    assert cells[0].startswith(("in 9 min ", "in 10 min"))
    assert cells[1] == ""


async def test_the_list_says_when_a_plan_must_have_ended(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    gate: dict[str, Any] = {"id": "gate", "tool": "list_directory", "args": {}, "requiresApproval": True}
    file = written(tmp_path / "plan.json", {"title": "Timed", "steps": [gate], "timeout": 3_600.0})
    name = (await plan(environ, "start", file, "--timeout", "2h", "--json")).json["planId"]

    async def row() -> dict[str, Any] | None:
        rows = (await plan(environ, "list", "--limit", "1000", "--json")).json
        return next((each for each in rows if each["planId"] == name and each["deadline"]), None)

    found = await until(row, "it has begun")
    assert found is not None
    left = datetime.fromisoformat(found["deadline"]) - datetime.fromisoformat(found["startedAt"])
    assert timedelta(hours=2) <= left < timedelta(hours=2, minutes=2)
    assert "Deadline: in 1" in (await plan(environ, "show", name)).out
    assert (await plan(environ, "cancel", name)).code == 0


def test_the_table_names_hosts_where_workers_have_a_workspace_each() -> None:
    shown = plans_table([listed(host="blue\x1b[2J"), listed()])
    assert [str(column.header) for column in shown.columns][-2:] == ["HOST", "TITLE"]
    [blue, none] = shown.columns[-2].cells
    assert "blue" in str(blue)
    assert "\x1b" not in str(blue)
    assert str(none) == ""
    assert "HOST" not in [str(column.header) for column in plans_table([listed()]).columns]


@pytest.mark.slow
async def test_lists_are_filtered_and_say_what_is_awaited(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    gate: dict[str, Any] = {"id": "gate", "tool": "run_command", "args": {"command": "true"}, "requiresApproval": True}
    look: dict[str, Any] = {"id": "look", "tool": "list_directory", "args": {"path": "."}}
    inner: dict[str, Any] = {"id": "inner", "tool": "plan", "args": {"steps": [gate]}}
    names = []
    for number, step in enumerate((look, gate, inner)):
        file = written(tmp_path / f"{number}.json", {
            "title": f"Plan {number}", "steps": [look, {**step, "id": "x"}], "labels": {"number": str(number)},
        })  # fmt: skip
        names.append(str((await plan(environ, "start", file, "--json")).json["planId"]))
    assert (await plan(environ, "watch", names[0])).code == 0

    async def found(*options: str) -> dict[str, Any]:
        rows = (await plan(environ, "list", "--limit", "1000", *options, "--json")).json
        return {row["planId"]: row for row in rows}

    async def both_ask() -> bool:
        rows = await found("--awaiting")
        return {names[1], names[2]} <= rows.keys() and all(rows[name]["asks"] for name in names[1:])

    await until(both_ask, "the plan that asks, and the one whose child plan asks")
    rows = await found("--awaiting")
    assert names[0] not in rows
    assert rows[names[1]]["labels"] == {"number": "1"}
    assert (await plan(environ, "show", names[1], "--json")).json["labels"] == {"number": "1"}
    assert [each["stepId"] for each in rows[names[1]]["asks"]] == ["x"]
    assert [each["stepId"] for each in rows[names[2]]["asks"]] == ["x/gate"]
    assert rows[names[1]]["since"]
    assert rows[names[1]]["next"][0]["command"] == f"plan pending {names[1]}"
    assert names[0] in await found("--status", "completed")
    assert not {names[1], names[2]} & (await found("--status", "completed,failed")).keys()
    assert set(names) <= (await found("--since", "1h")).keys()
    shown = (await plan(environ, "list", "--running")).out
    assert "AWAITS" in shown
    assert "Next: plan pending " in shown
    for name, step_id in ((names[1], "x"), (names[2], "x/gate")):
        assert (await plan(environ, "deny", name, step_id)).code == 0
        assert (await plan(environ, "watch", name)).code == 1

    async def partial() -> bool:
        rows = await found("--status", "partial")
        return names[1] in rows and rows[names[1]]["done"] == 1

    await until(partial, "the list says how far it came")


async def test_an_empty_list_says_which_filter_was_used(environ: Environ, worker: Worker) -> None:
    for options, text in (
        (("--status", "draft", "--since", "0s"), "No plan has the status draft and was started since 0s."),
        (("--awaiting", "--schedule", "none"), "No plan awaits a person and was started by schedule none."),
        (("--running", "--since", "2099-01-01"), "No plan is running and was started since 2099-01-01."),
    ):
        listed = await plan(environ, "list", *options)
        assert listed.code == 0
        assert listed.err.strip() == f"{text} All plans: plan list"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--status", "done"), "--status 'done' is not a status of a plan; choose from: draft, review, running"),
        (("--since", "yesterday"), "--since 'yesterday' is not a time; write 90m, 2h, 3d, 2027-03-28"),
    ],
)
async def test_a_filter_that_cannot_be_is_refused_before_a_server_is_asked(options: tuple[str, ...], text: str) -> None:
    refused = await plan({}, "list", *options)
    assert refused.code == 2
    assert refused.err.startswith(f"BAD_USAGE: {text}")
