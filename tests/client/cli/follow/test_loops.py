"""Following plans with loops: a line per item of a small one, a bounded number of lines for a big one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from rich.console import Console

from plansurvive.apps.review.nested import shown_steps
from plansurvive.apps.review.rows import detail, rows
from plansurvive.client.cli.follow.big_plan_lines import Digest
from plansurvive.client.cli.follow.board import board
from plansurvive.client.cli.follow.catch_up import past
from plansurvive.client.cli.follow.lines import COUNTS
from plansurvive.plans.views import queries
from plansurvive.plans.views.models import BriefView, PlanView
from plansurvive.plans.views.progress.events import EventView, events
from plansurvive.plans.views.summary import summary_of, why_failed
from tests.plans.building import NOW
from tests.plans.flow.player import Player, broken, note, plan
from tests.plans.views.test_nested import big, troubled


def brief(player: Player) -> BriefView:
    return BriefView.read(queries.view(player.run, [queries.BRIEF]))


def lines(player: Player, view: BriefView, since: int = 0) -> tuple[list[str], int]:
    """The lines of all events, and how often the view had to be queried again."""
    digest, queried, found = Digest("p", view), 0, list[str]()
    for event in map(EventView.read, events(player.run, since)):
        if not digest.knows(event):
            queried += 1
            digest.learn(brief(player))
        found += digest.of(event)
    return found, queried


def before_it_begins(player: Player) -> BriefView:
    """What a watcher saw of the plan at its start."""
    view = brief(Player(player.run.model_copy(deep=True)))
    steps = [step.model_copy(update={"inside": None, "instances": []}) for step in view.steps]
    return view.model_copy(update={"seq": 0, "steps": steps, "inside": {}, "pending": []})


def test_each_item_has_its_lines_in_a_small_loop() -> None:
    player = troubled()
    found, _ = lines(player, before_it_begins(player))
    text = "\n".join(found)
    assert "✗ resize[dog].thumb" in text
    assert "item         │ cow, item 3 of 3" in text
    assert "plan approve p 'resize[cow].clean'   or: plan deny p 'resize[cow].clean'" in text


@pytest.mark.slow
def test_a_loop_of_thousands_of_items_is_told_in_few_lines_and_queries() -> None:
    player = big(3_000)
    found, queried = lines(player, before_it_begins(player))
    assert len(found) < 40
    assert queried <= 2
    assert any("of 3,001 steps" in row for row in found)
    assert any("each[0]" in row for row in found)  # it failed


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_late_watcher_of_a_big_loop_gets_what_matters() -> None:
    player = big(3_000)
    view = brief(player)
    digest = Digest("p", view)
    found = [row for event in past(view) for row in digest.of(event)]
    assert digest.is_big
    assert any("each[0]" in row for row in found)
    assert len(found) < 40


def drawn(player: Player, height: int = 30) -> str:
    console = Console(width=120, height=height, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(board(brief(player), NOW + timedelta(seconds=5), height))
    return capture.get()


def test_the_board_unfolds_what_failed_and_what_waits() -> None:
    text = drawn(troubled())
    assert "3 items: 1 done, 1 failed, 1 awaiting approval" in text
    assert "? [cow].clean" in text
    assert "✗ [dog].thumb" in text


def test_the_board_has_room_for_a_big_loop() -> None:
    assert len(drawn(big(1_000), 20).split("\n")) <= 20


def test_the_review_screen_has_a_row_for_each_item_that_needs_a_look() -> None:
    player = troubled()
    view = PlanView.read(queries.view(player.run, []))
    names = [step.id for step in shown_steps(view)]
    assert names == ["before", "resize", "resize[dog].thumb", "resize[cow].clean", "after"]
    shown = [row.plain for row in rows(view, 100)]
    assert "? approve: y/n" in shown[3]
    console = Console(width=80)
    with console.capture() as capture:
        console.print(detail(view, shown_steps(view)[3], {}))
    assert "cow, item 3 of 3" in capture.get()


def test_a_plan_whose_catch_runs_is_followed_without_queries() -> None:
    player = Player(troubled().run.model_copy(deep=True), broken("resize[dog].thumb"))
    digest = Digest("p", brief(player))
    head = {"seq": 10**6, "time": NOW, "taskId": "p", "status": "running"}
    assert digest.knows(EventView.read(head | {"stepId": "resize[dog].catch"}))
    assert digest.knows(EventView.read(head | {"stepId": "resize[new]"}))
    assert not digest.knows(EventView.read(head | {"stepId": "resize"}))


def test_of_a_long_loop_only_what_failed_has_lines_and_each_error_is_there_once() -> None:
    loop = {"id": "resize", "forEach": {"items": list(range(20))}, "steps": [note("thumb", "{{item}}"), note("last")]}
    player = Player(plan(loop), broken("resize[7].thumb")).play()
    view = brief(player)
    found, _ = lines(player, view.model_copy(update={"seq": 0}))
    rows = [" ".join(row.split()[1:]) for row in found]
    assert rows[0] == "▸ resize x 20"
    failures = [row for row in rows if row.startswith("✗")]
    assert failures == ["✗ resize[7].thumb failed (BROKEN): failed", "✗ resize failed (ITEMS_FAILED)"]
    assert rows[-2] == "resize 20 items ended: 19 done, 1 failed"
    assert len(rows) == 1 + 2 + COUNTS


def test_the_line_of_a_block_leaves_the_error_to_the_step_inside_it() -> None:
    player = Player(plan({"id": "outer", "steps": [note("inner")]}), broken("outer.inner")).play()
    found, _ = lines(player, before_it_begins(player))
    assert [row.partition("  failed ")[2] for row in found if "✗" in row] == ["(BROKEN): failed", "(BROKEN)"]
    summary = summary_of(player.run)
    assert why_failed(summary, summary.failed[0]) == "failed"
    assert why_failed(summary, summary.failed[1]) == "0 of 1 steps, 1 failed"
