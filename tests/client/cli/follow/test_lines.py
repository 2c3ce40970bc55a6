"""Plain progress lines: what is told of an event, and what is not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from plansurvive.client.cli.follow.big_plan_lines import Digest
from plansurvive.client.cli.follow.lines import Lines
from plansurvive.client.runs import BriefView, EventView
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.queries import BRIEF, QUERIES
from tests.plans.flow.player import Player, failing, note, plan

STEP = {"id": "remove", "tool": "delete_file", "description": "Remove it", "args": {"path": "x"}}
VIEW = BriefView.read({"id": "p", "status": "running", "steps": [STEP]})


ASKS = {"awaiting": "approval"}


def told(*events: tuple[str, dict[str, Any]]) -> list[str]:
    """The lines, without their clock."""
    lines = Lines("p", VIEW)
    found = []
    for number, (status, more) in enumerate(events):
        given = {"seq": number, "time": "2026-01-01T12:00:00Z", "taskId": "p", "stepId": "remove", "status": status}
        found += lines.of(EventView.read(given | more))
    return [row[10:] for row in found]


def test_a_step_is_told_when_it_starts_and_when_it_ends() -> None:
    result = {"result": {"ok": True, "duration": 3200}}
    rows = told(("blocked", {}), ("ready", {}), ("running", {}), ("completed", result))
    assert rows == ["▸ remove  delete_file · Remove it", "✓ remove  completed in 3.2 s"]


def test_a_step_that_asks_says_how_to_answer() -> None:
    rows = told(("ready", {}), ("ready", ASKS))
    call = ["  remove  tool         │ delete_file", "  remove  path         │ x"]
    assert rows[:3] == ["? remove  awaiting approval:", *call]
    assert "plan approve p remove" in rows[3]


def test_a_question_is_told_with_the_arguments_that_are_asked_about() -> None:
    lines = Lines("p", VIEW.model_copy(update={"seq": 1}))
    first, asks = (
        EventView(
            seq=seq,
            time=datetime(2026, 1, 1, tzinfo=UTC),
            task_id="p",
            step_id="remove",
            status="ready",
            awaiting=awaiting,
        )
        for seq, awaiting in ((1, None), (2, "approval"))
    )
    assert lines.knows(first)
    assert lines.of(first) == []
    assert not lines.knows(asks)
    item = Card(step_id="remove", kind="approval", tool="delete_file", args={"path": "filled-in"})
    lines.learn(VIEW.model_copy(update={"seq": 2, "pending": [item]}))
    assert lines.knows(asks)
    assert lines.of(asks)[2].endswith("path         │ filled-in")


def test_a_step_inside_a_loop_is_told_without_asking_for_the_plan_again() -> None:
    lines = Lines("p", VIEW)
    for name, known in (("remove[a.txt].check", True), ("remove#3", True), ("other[a.txt]", False)):
        event = EventView(seq=1, time=datetime(2026, 1, 1, tzinfo=UTC), task_id="p", step_id=name, status="running")
        assert lines.knows(event) == known


def test_a_step_that_ran_before_it_asks_is_told_as_well() -> None:
    assert told(("ready", {}), ("running", {}), ("ready", ASKS))[1].startswith("? remove  awaiting approval")


def test_a_step_that_is_mended_does_not_seem_to_ask_a_person() -> None:
    mending = ("running", {"logs": [{"kind": "mending", "text": "failed, the LLM is asked"}]})
    rows = told(("ready", {}), ("running", {}), mending, ("ready", {}), ("blocked", {}), ("ready", {}), ("running", {}))
    assert not any("awaiting approval" in row for row in rows)


def test_a_failure_is_told_with_its_code_and_its_reason() -> None:
    result = {"result": {"ok": False, "duration": 100, "code": "NOT_FOUND", "error": "no\x1b[2J file"}}
    assert told(("failed", result)) == ["✗ remove  failed after 0.1 s (NOT_FOUND): no\\u001b[2J file"]


def test_a_diff_in_an_error_stands_below_it_line_by_line_and_is_cut() -> None:
    diff = [f"-old {number}\x1b[2J" for number in range(30)]
    result = {"result": {"ok": False, "duration": 100, "code": "CONFLICT", "error": "\n".join(["modified", *diff])}}
    head, *rows = told(("failed", result))
    assert head == "✗ remove  failed after 0.1 s (CONFLICT): modified"
    assert [row.strip() for row in rows[:2]] == ["-old 0\\u001b[2J", "-old 1\\u001b[2J"]
    assert (len(rows), rows[-1].strip()) == (21, "… 10 more lines; see all: plan show")


def test_a_line_of_the_log_is_told_as_it_is() -> None:
    entry = {"logs": [{"kind": "paused", "text": "paused by ann"}], "stepId": ""}
    assert told(("running", entry)) == ["  plan    paused by ann"]


FAILED = {"number": 1, "began": "2026-01-01T12:00:00Z", "code": "BUSY", "error": "busy\x1b[2J", "delay": 1.0}
SAID = [{"kind": "attempt", "text": "attempt 1 of 3 failed: BUSY busy; next in 1 s", "code": "BUSY"}]


def test_an_attempt_that_failed_is_told_once_live_or_with_the_end() -> None:
    done = {"result": {"ok": True, "duration": 200}, "attempts": [FAILED]}
    live = told(("running", {}), ("running", {"logs": SAID, "attempts": [FAILED]}), ("completed", done))
    assert live[1:] == ["  remove  attempt 1 of 3 failed: BUSY busy; next in 1 s", "✓ remove  completed in 0.2 s"]
    late = told(("running", {}), ("completed", done))
    assert late[1:] == ["  remove  attempt 1 failed: BUSY busy\\u001b[2J; next in 1 s", "✓ remove  completed in 0.2 s"]


def test_the_times_of_lines_never_go_back_when_attempts_are_known_late() -> None:
    lost = {"number": 1, "began": "2026-01-01T11:59:00Z", "duration": 4_000, "code": "WORKER_LOST", "error": "it died"}
    said = {"logs": [{"kind": "attempt", "text": "attempt 1 was lost: it died"}], "time": "2026-01-01T11:59:04Z"}
    done = ("completed", {"result": {"ok": True, "duration": 200}, "attempts": [lost]})
    ahead = (
        "running",
        {"logs": [{"kind": "progress", "text": "1 file"}], "progress": 10, "time": "2026-01-01T12:09:00Z"},
    )
    tales: list[list[tuple[str, dict[str, Any]]]] = [
        [("running", {}), ("running", said | {"attempts": [lost]}), done],
        [("running", {}), done],
        [("running", {}), ahead, done],
    ]
    for events in tales:
        lines, found = Lines("p", VIEW), list[str]()
        for number, (status, more) in enumerate(events):
            given = {"seq": number, "time": "2026-01-01T12:00:00Z", "taskId": "p", "stepId": "remove", "status": status}
            found += lines.of(EventView.read(given | more))
        times = [row[:8] for row in found if "1 file" not in row]
        at = datetime(2026, 1, 1, 11, 59, 4, tzinfo=UTC).astimezone()
        assert (times, len(set(times))) == (sorted(times), 1), found
        assert f"attempt 1 was lost: it died (at {at:%H:%M:%S})" in found[-2], found


def test_progress_is_told_once_per_ten_percent_and_from_the_start_in_the_next_attempt() -> None:
    def at(percent: int | None) -> tuple[str, dict[str, Any]]:
        return "running", {"progress": percent, "logs": [{"kind": "progress", "text": f"{percent} files"}]}

    rows = told(("running", {}), *map(at, (1, 9, 10, 14, 25, 29, None, 31)), ("running", {}), at(12))
    assert rows[1:] == [
        "  remove  10 files", "  remove  25 files", "  remove  31 files", "▸ remove  delete_file · Remove it",
        "  remove  12 files",
    ]  # fmt: skip


def test_progress_of_calls_side_by_side_below_one_step_is_told_of_each() -> None:
    def at(percent: int, call: str) -> tuple[str, dict[str, Any]]:
        entry = {"kind": "progress", "text": f"{call}: {percent} files", "subject": call}
        return "running", {"progress": percent, "logs": [entry]}

    rows = told(("running", {}), at(80, "sub/a"), at(30, "sub/b"), at(81, "sub/a"), at(31, "sub/b"), at(90, "sub/a"))
    assert rows[1:] == ["  remove  sub/a: 80 files", "  remove  sub/b: 30 files", "  remove  sub/a: 90 files"]


async def test_an_approval_is_told_with_the_change_to_the_file() -> None:
    item = Card(step_id="remove", kind="approval", tool="write_file", args={"path": "x", "content": "new"}, digest="d1")
    lines = Digest("p", VIEW.model_copy(update={"seq": 2, "pending": [item]}))
    first, asks = (
        EventView(
            seq=seq,
            time=datetime(2026, 1, 1, tzinfo=UTC),
            task_id="p",
            step_id="remove",
            status="ready",
            awaiting=awaiting,
        )
        for seq, awaiting in ((1, None), (2, "approval"))
    )
    looked: list[str] = []

    async def compared(item: Card) -> Card:
        looked.append(item.step_id)
        return item.model_copy(update={"change": {"content": "-old\n+new"}})

    rows = []
    for event in (first, asks):
        await lines.look(event, compared)
        rows += lines.of(event)
    assert looked == ["remove"]
    assert [row.rpartition("│ ")[2] for row in rows if "old" in row or "+new" in row] == ["-old", "+new"]


def test_what_undoes_a_step_is_called_by_its_tool_and_not_a_block() -> None:
    one = note("one", 1) | {"undo": {"tool": "delete_file", "args": {"path": "x"}, "requiresApproval": False}}
    two = note("two", 1, "one") | {"undo": {"steps": [note("back", 1)]}}
    player = Player(plan(one, two, note("bad", 1, "two"), rollback=True), failing("BROKEN", "bad"))
    lines = Lines("p", BriefView.read(QUERIES["plan"](player.run, [BRIEF])))
    rows = []
    for event in map(EventView.read, QUERIES["events"](player.play().run, [{"since": 0, "limit": 1_000}])):
        assert lines.knows(event)
        rows += [row[10:] for row in lines.of(event)]
    assert [row.split(" · ")[0] for row in rows if row.startswith("▸") and "undo" in row] == [
        "▸ two.undo  block", "▸ two.undo.back  note", "▸ one.undo  delete_file",
    ]  # fmt: skip
