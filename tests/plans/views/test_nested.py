"""Blocks and loops in views: folded into counts, unfolded within bounds, whatever the size of the loop."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plansurvive.plans.run import Run
from plansurvive.plans.views import queries
from plansurvive.plans.views.markdown import Node, details, mermaid
from plansurvive.plans.views.models import BriefView, InsidePage, PlanView
from plansurvive.plans.views.next_actions import next_actions
from plansurvive.plans.views.steps.counting import Census
from plansurvive.plans.views.steps.rows import folded
from plansurvive.plans.views.summary import summary_markdown, summary_of
from plansurvive.plans.views.text import text
from tests.plans.building import step
from tests.plans.flow.player import Player, broken, note, plan

HOSTILE = ["a\n\x1b[31mred", "\u202egnp.exe", "x" * 10_000, "a]b[c", "%41", "img/cat.png#2"]


def mapped(items: list[Any], **fields: Any) -> Run:
    """A run of a loop whose items have two steps, of which the second needs approval."""
    clean = {"id": "clean", "tool": "delete_file", "args": {"path": "$thumb"}}
    loop = {"items": items, "key": "@", "tolerate": 2}
    body = {"id": "resize", "description": "Make small", "forEach": loop, "steps": [note("thumb", "{{item}}"), clean]}
    return plan(note("before"), body | fields, note("after", None, "resize"))


def troubled() -> Player:
    """One item done, one failed, one awaits approval."""
    player = Player(mapped(["cat", "dog", "cow"]), broken("resize[dog].thumb")).play()
    player.decide("resize[cat].clean")
    return player.play()


def big(items: int) -> Player:
    """A loop of calls of which the first has failed."""
    loop = {"id": "each", "tool": "note", "args": {"text": "{{item}}"}, "forEach": {"items": list(range(items))}}
    return Player(plan(loop | {"forEach": {"items": list(range(items)), "tolerate": 1}}), broken("each[0]")).play()


def test_a_loop_is_folded_into_one_line_of_counts() -> None:
    run = troubled().run
    assert folded(Census(run), "resize") == "resize x 3: 1 done, 1 failed, 1 awaiting approval"
    assert "      resize x 3: 1 done, 1 failed, 1 awaiting approval" in text(run).split("\n")
    assert "resize x 3: 1 done, 1 failed, 1 awaiting approval" in details(run, troubled().schedule)
    assert "- resize x 3: 1 done, 1 failed, 1 awaiting approval" in summary_markdown(summary_of(run))


@pytest.mark.parametrize(
    ("construct", "line"),
    [
        ({"steps": [note("a"), note("b")]}, "x: 2 of 2 steps"),
        ({"switch": [{"when": "`false`", "steps": [note("a")]}, {"steps": [note("b")]}]},
         "x: alternative 2 of 2, 1 of 1 steps"),
        ({"tool": "note", "args": {"text": "{{round}}"}, "repeat": {"until": "@ == '3' || @ == `3`", "limit": 9}},
         "x: round 3 of 9"),
        ({"tool": "note", "args": {}, "forEach": {"items": []}}, "x x 0: nothing to do"),
        ({"tool": "note", "args": {"text": "no"}, "catch": [{"steps": [note("fix")]}]}, "x: caught BROKEN"),
    ],
)  # fmt: skip
def test_each_construct_has_its_line(construct: dict[str, Any], line: str) -> None:
    player = Player(plan({"id": "x", **construct}), broken("x")).play()
    assert folded(Census(player.run), "x") == line


def test_counts_and_progress_are_of_the_plans_own_steps() -> None:
    run = troubled().run
    brief = BriefView.read(queries.view(run, [queries.BRIEF]))
    assert brief.counts == {"total": 3, "completed": 1, "running": 1, "blocked": 1}
    assert "Progress: 1/3 (44.4% with the steps inside)" in text(run)  # a third of the loop is done
    assert brief.inside["total"] == 9
    assert [each.id for each in brief.steps] == ["before", "resize", "after"]


def test_what_failed_or_waits_inside_is_listed_by_itself() -> None:
    run = troubled().run
    brief = BriefView.read(queries.view(run, [queries.BRIEF]))
    assert [(each.id, each.item) for each in brief.steps[1].instances] == [
        ("resize[cow].clean", "cow, item 3 of 3"),
        ("resize[dog].thumb", "dog, item 2 of 3"),
    ]
    shown = text(run)
    assert "        [✗] resize[dog].thumb · failed (BROKEN): failed" in shown
    assert "        [?] resize[cow].clean · awaiting approval · cow, item 3 of 3" in shown
    assert [item.item for item in brief.pending] == ["cow, item 3 of 3"]


def test_a_summary_names_the_items_that_failed_and_how_to_see_why() -> None:
    player = Player(mapped(["cat"], forEach=["cat"]), broken("resize[0].thumb")).play()
    summary = summary_of(player.run)
    assert [each.step_id for each in summary.failed] == ["resize[0].thumb", "resize"]
    commands = [command for command, _ in next_actions(summary)]
    assert commands == ["plan logs p 'resize[0].thumb'", "plan resume p", "plan rerun p --from 'resize[0]'"]


def test_the_history_of_a_loop_has_the_instance_in_each_entry() -> None:
    view = PlanView.read(queries.view(troubled().run, []))
    calls = queries.view(troubled().run, [])["step_tool_history"]["1"]
    assert [call["stepId"] for call in calls] == [
        "resize[cat].thumb", "resize[cat].clean", "resize[dog].thumb", "resize[cow].thumb"
    ]  # fmt: skip
    assert [call.step_id for call in view.step_tool_history["1"]] == [call["stepId"] for call in calls]


def test_a_graph_has_one_marked_node_for_a_loop() -> None:
    view = PlanView.read(queries.view(troubled().run, []))
    drawn = mermaid([Node.of(each) for each in view.steps])
    assert 's1["resize: Make small<br/>? 3 items: 1 done, 1 failed, 1 awaiting approval"]:::waiting' in drawn
    assert drawn.count("-->") == 1


def test_a_loop_unfolds_in_pages_with_the_values_of_its_items() -> None:
    run = big(1_200).run
    first = InsidePage.read(queries.inside(run, [{"stepId": "each", "limit": 500}]))
    assert first.step is not None
    assert (len(first.steps), first.next, first.steps[1].id) == (500, 500, "each[1]")
    assert first.steps[1].result is not None
    assert first.steps[1].result.value == "1"
    last = InsidePage.read(queries.inside(run, [{"stepId": "each[*]", "since": 1_000, "limit": 500}]))
    assert (len(last.steps), last.next, last.steps[-1].id) == (200, None, "each[1199]")
    assert queries.inside(run, [{"stepId": "nobody"}]) == {}


def test_what_is_done_can_be_left_out_of_the_pages_and_is_counted() -> None:
    page = InsidePage.read(queries.inside(troubled().run, [{"stepId": "resize", "unfinished": True}]))
    names = ["resize[dog]", "resize[dog].thumb", "resize[dog].clean", "resize[cow]", "resize[cow].clean"]
    assert ([each.id for each in page.steps], page.done) == (names, 4)


@pytest.mark.slow
def test_views_of_20_000_items_stay_small() -> None:
    check_size(20_000)


def test_views_of_a_thousand_items_are_no_larger_than_those_of_a_few_hundred() -> None:
    check_size(1_000)


def check_size(items: int) -> None:
    """The views of a loop do not grow with its items."""
    few, many = big(300), big(items)
    for name, limit in (("brief", 1.2), ("plan", 4.0), ("text", 1.2), ("details", 1.2), ("summary", 1.2)):
        sizes = [len(json.dumps(shown(name, each), default=str)) for each in (few, many)]
        assert sizes[1] < limit * sizes[0] + items * 8, (name, sizes)
    assert shown("brief", many)["steps"][0]["inside"]["counts"] == {"completed": items - 1, "failed": 1}
    assert len(shown("plan", many)["steps"][0]["instances"]) == 50
    assert shown("plan", many)["steps"][0]["moreInstances"] == items - 50


def shown(name: str, player: Player) -> Any:
    """One view; without the items, which are the plan's own text."""
    if name == "brief":
        return queries.view(player.run, [queries.BRIEF])
    if name == "plan":
        view = queries.view(player.run, [], player.schedule)
        return {**view, "steps": [{**each, "forEach": None, "result": None} for each in view["steps"]]}
    if name == "text":
        return text(player.run, 100, detailed=True)
    return details(player.run, player.schedule) if name == "details" else summary_of(player.run).to_json()


def test_the_details_of_a_turn_do_not_look_at_the_items() -> None:
    player = big(1_000)
    looked: list[str] = []

    class Counted(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            looked.append(key)
            return super().__getitem__(key)

    player.run.steps = Counted(player.run.steps)
    details(player.run, player.schedule)
    assert len(looked) < 50


@pytest.mark.parametrize("key", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_keys_are_shown_on_one_line_and_in_bounds(key: str) -> None:
    player = Player(mapped([key, "other"]), broken("none")).play()
    rows = [*text(player.run, detailed=True).split("\n"), *details(player.run, player.schedule).split("\n")]
    assert not any(sign in row for row in rows for sign in ("\x1b", "\u202e"))
    names = [each["stepId"] for each in queries.view(player.run, [])["pending"]]
    assert len(names) == 2
    assert all(len(name) < 200 for name in names)
    player.decide(names[0])
    assert player.play().run.steps[names[0]].status == "completed"


def test_a_plain_plan_has_none_of_this() -> None:
    player = Player(plan(note("a"), note("b", None, "a"))).play()
    shown = json.dumps([queries.view(player.run, []), queries.view(player.run, [queries.BRIEF])])
    assert not any(f'"{name}"' in shown for name in ("inside", "instances", "templates", "morePending", "stepId"))
    assert not Census(player.run).has_any
    assert "inside" not in summary_of(player.run).to_json()
    assert step("a").for_each is None


def test_a_step_in_a_loop_shows_its_arguments_with_the_item_and_only_steps_as_what_it_needs() -> None:
    steps = [note("first", "x"), note("then", "{{f}} after {{first}} and {{other}}")]
    played = Player(plan(note("other", "o"), {"id": "each", "forEach": {"items": ["a"], "as": "f"}, "steps": steps}))
    shown = InsidePage.read(queries.inside(played.play().run, [{"stepId": "each[0].then"}])).step
    assert shown is not None
    assert (shown.args, shown.needs) == ({"text": "a after x and o"}, ["each[0].first", "other"])
