"""Loops: items in order, windows, keys, tolerance, nesting, approvals inside, resume and rerun (DESIGN 2.8)."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.editing.next_run import Replacement
from plansurvive.plans.execution.resume import rerun_from, rerun_only, resumed
from tests.plans.building import NOW
from tests.plans.flow.player import Player, broken, code_of, plan

NOTE = {"tool": "note", "args": {"text": "{{item}}"}}


def each(items: Any, **rule: Any) -> dict[str, Any]:
    return {"id": "each", "forEach": {"items": items} | rule, **NOTE}


def test_each_item_runs_once_and_the_values_come_in_item_order() -> None:
    played = Player(plan(each(["a", "b", "c"]), {"id": "all", "tool": "note", "args": {"text": "$each"}})).play()
    assert played.called == ["each[0]", "each[1]", "each[2]", "all"]
    assert played.value("all") == ["a", "b", "c"]
    assert played.run.status == "completed"


def test_an_empty_list_completes_with_an_empty_list() -> None:
    played = Player(plan({"id": "list", "tool": "note", "args": {"text": []}}, each("list"))).play()
    assert (played.value("each"), played.run.status) == ([], "completed")


@pytest.mark.parametrize(
    ("items", "code"),
    [
        ("list", "NOT_A_LIST"),
        ("$list", "NOT_A_LIST"),
        ("list.nothing", "NOT_A_LIST"),
        ([{"k": 1}, {"k": 1}], "BAD_KEY"),
    ],
)
def test_a_list_that_is_none_fails_the_step_with_its_code(items: Any, code: str) -> None:
    rule = {"key": "k"} if isinstance(items, list) else {}
    played = Player(plan({"id": "list", "tool": "note", "args": {"text": {"a": 1}}}, each(items, **rule))).play()
    assert code_of(played, "each") == code


def test_two_items_with_one_key_are_found_in_a_long_list() -> None:
    played = Player(plan(each([{"k": number} for number in [*range(19_999), 19_998]], key="k"))).play()
    assert "two items have the key '19998'" in str(played.run.steps["each"].result)


def test_keys_name_the_instances() -> None:
    items = [{"name": "cat.png"}, {"name": "a[b]/ö x"}]
    played = Player(plan(each(items, key="name") | {"args": {"text": "{{item.name}} {{key}} {{index}}"}})).play()
    assert played.called == ["each[cat.png]", "each[a%5Bb%5D/ö%20x]"]
    assert played.value("each")[0] == "cat.png cat.png 0"


def test_no_more_items_run_at_once_than_the_window_allows_and_there_is_no_barrier() -> None:
    running: list[int] = []

    def tool(name: str, args: dict[str, Any]) -> Any:
        running.append(player.schedule.running)
        return None

    player = Player(plan(each(list(range(50)), maxParallel=4)), tool)
    player.play()
    assert max(running) == player.most == 4
    assert running.count(4) >= 46, "a finished item is followed by the next at once"


def test_a_block_runs_its_steps_per_item_and_its_value_is_the_object_of_their_values() -> None:
    steps = [
        {"id": "one", "tool": "note", "args": {"text": "{{x}}1"}},
        {"id": "two", "tool": "note", "args": {"text": "{{one}}2"}},
    ]
    played = Player(
        plan({"id": "each", "forEach": {"items": ["a", "b"], "as": "x", "key": "@"}, "steps": steps})
    ).play()
    assert sorted(played.called) == ["each[a].one", "each[a].two", "each[b].one", "each[b].two"]
    assert played.value("each") == [{"one": "a1", "two": "a12"}, {"one": "b1", "two": "b12"}]


def test_loops_nest_and_see_the_variables_of_the_outer_ones() -> None:
    inner = {
        "id": "z",
        "forEach": {"items": ["p", "q"], "as": "c", "key": "@"},
        "tool": "note",
        "args": {"text": "{{a.name}}{{b}}{{c}}"},
    }
    middle = {"id": "y", "forEach": {"items": "a.more", "as": "b", "key": "@"}, "steps": [inner], "output": "z"}
    items = [{"name": "A", "more": ["1", "2"]}, {"name": "B", "more": []}]
    outer = {"id": "x", "forEach": {"items": items, "as": "a", "key": "name"}, "steps": [middle], "output": "y"}
    played = Player(plan(outer)).play()
    assert played.value("x") == [[["A1p", "A1q"], ["A2p", "A2q"]], []]
    assert "x[A].y[2].z[q]" in played.called


@pytest.mark.parametrize(
    ("tolerate", "status", "value"),
    [
        (0, "failed", None),
        (1, "completed", ["a", None, "c", "d"]),
        ("25%", "completed", ["a", None, "c", "d"]),
        ("24%", "failed", None),
    ],
)
def test_failures_are_tolerated_by_count_or_percent(tolerate: Any, status: str, value: Any) -> None:
    played = Player(plan(each(["a", "b", "c", "d"], tolerate=tolerate, maxParallel=4)), broken("each[1]")).play()
    assert played.statuses("each") == [status]
    assert played.value("each") == value
    assert played.run.status == ("completed" if status == "completed" else "partial")


def test_after_too_many_failures_no_item_begins() -> None:
    played = Player(plan(each(list(range(9)), maxParallel=2)), broken("each[1]")).play()
    assert len(played.called) <= 3
    assert code_of(played, "each") == "ITEMS_FAILED"
    assert "did not start, as `tolerate` is 0; the first:" in str(played.run.steps["each"].result)
    line = resumed(played.run, "p-r2", NOW).log[-1].text
    left = 9 - played.run.opened["each"].began
    assert line.startswith(f"resumes plan 'p': 1 step to run (each[1]), {left} items to start, ")


def test_a_critical_step_in_an_item_stops_the_plan_only_if_its_loop_fails() -> None:
    rows = each(["a", "b"], tolerate=1) | {"critical": True}
    played = Player(plan(rows, {"id": "after", "tool": "note", "dependsOn": ["each"]}), broken("each[0]")).play()
    assert (played.run.status, played.run.stopped) == ("completed", "")
    assert Player(plan(each(["a", "b"]) | {"critical": True}), broken("each[0]")).play().run.status == "failed"


def test_a_condition_about_the_item_skips_items_and_one_about_a_step_skips_the_loop() -> None:
    played = Player(plan(each([1, 2, 3]) | {"when": "item > `1`"})).play()
    assert (played.value("each"), played.called) == ([None, "2", "3"], ["each[1]", "each[2]"])
    played = Player(plan({"id": "a", "tool": "note", "args": {"text": 0}}, each([1]) | {"when": "a == `1`"})).play()
    assert played.statuses("each") == ["skipped"]


def test_items_ask_one_by_one_and_leave_their_place_in_the_window_while_they_wait() -> None:
    played = Player(plan(each(list("abcd"), maxParallel=1, tolerate=1) | {"requiresApproval": True})).play()
    assert list(played.schedule.awaiting) == ["each[0]", "each[1]", "each[2]", "each[3]"]
    played.decide("each[2]")
    played.decide("each[0]", False)
    played.play()
    assert played.called == ["each[2]"]
    played.decide("each[1]")
    played.decide("each[3]")
    played.play()
    assert (played.value("each"), played.run.status) == ([None, "b", "c", "d"], "partial")


def test_no_more_than_500_items_ask_at_the_same_time() -> None:
    played = Player(plan(each(list(range(600))) | {"requiresApproval": True})).play()
    assert len(played.schedule.awaiting) == 500
    played.decide("each[0]")
    played.play()
    assert len(played.schedule.awaiting) == 500
    assert "each[500]" in played.run.steps


@pytest.mark.parametrize("reload", [False, True])
def test_a_resumed_loop_runs_only_the_item_that_failed(reload: bool) -> None:
    steps = [
        {"id": name, "tool": "note", "args": {"text": "{{item}}"}, "dependsOn": needs}
        for name, needs in (("a", []), ("b", ["a"]))
    ]
    loop = {"id": "each", "forEach": {"items": "list", "key": "@"}, "steps": steps}
    rows = (
        {"id": "list", "tool": "note", "args": {"text": ["x", "y", "z"]}},
        loop,
        {"id": "end", "tool": "note", "args": {"text": "$each"}},
    )
    played = Player(plan(*rows), broken("each[y].b"), reload=reload).play()
    assert played.run.status == "partial"
    again = Player(resumed(played.run, "p-r2", NOW), reload=reload).play()
    assert again.called == ["each[y].b", "end"]
    assert again.value("end") == [{"a": item, "b": item} for item in ("x", "y", "z")]


def test_a_changed_list_runs_the_new_items_only_and_forgets_those_that_are_gone() -> None:
    made: list[Any] = [{"k": f"k{n}", "v": n} for n in range(10)]
    rows = ({"id": "list", "tool": "note"}, each("$list", key="k") | {"args": {"text": "{{item.v}}"}})

    def tool(name: str, args: dict[str, Any]) -> Any:
        return list(made) if name == "list" else args["text"]

    played = Player(plan(*rows), tool).play()
    made[:] = [*made[3:8], {"k": "new", "v": 99}, {"k": "k9", "v": "other"}]
    again = Player(rerun_from(played.run, "list", "p-r2", NOW), tool).play()
    assert again.called == ["list", "each[new]", "each[k9]"], "k9 has the same key, but is another item"
    assert again.value("each") == ["3", "4", "5", "6", "7", "99", "other"]
    assert Player(rerun_from(played.run, "each", "p-r2", NOW), tool).play().called == [f"each[k{n}]" for n in range(10)]


def test_a_list_replaced_with_the_rerun_keeps_the_items_it_had() -> None:
    played = Player(plan(each(["a", "b"], key="@"))).play()
    changes = [Replacement(step_id="each", path="forEach.items", value=["b", "c"])]
    assert Player(rerun_from(played.run, "each", "p-r2", NOW, "", changes)).play().called == ["each[c]"]


def test_one_item_can_be_rerun_by_its_id() -> None:
    played = Player(plan(each(["a", "b"], key="@"), {"id": "end", "tool": "note", "args": {"text": "$each"}})).play()
    again = Player(rerun_from(played.run, "each[b]", "p-r2", NOW)).play()
    assert again.called == ["each[b]", "end"]


def test_a_denied_item_asks_again_after_a_resume() -> None:
    played = Player(plan(each(["a", "b"], key="@") | {"requiresApproval": True})).play()
    played.decide("each[a]")
    played.decide("each[b]", False)
    assert played.play().run.status == "partial"
    again = Player(resumed(played.run, "p-r2", NOW)).play()
    assert list(again.schedule.awaiting) == ["each[b]"]
    again.decide("each[b]")
    assert (again.play().value("each"), again.run.status) == (["a", "b"], "completed")


USES = {"id": "end", "tool": "note", "args": {"text": "$each"}}


def asking(items: list[Any], **rule: Any) -> dict[str, Any]:
    return each(items, key="@", **rule) | {"requiresApproval": True}


def test_a_denied_item_counts_towards_what_a_loop_tolerates_but_keeps_none_from_being_decided() -> None:
    played = Player(plan(asking(["a", "b", "c"], maxParallel=1), USES))
    for name, approved in (("each[a]", False), ("each[b]", True), ("each[c]", False)):
        assert name in played.play().schedule.awaiting
        played.decide(name, approved)
    played.play()
    found = played.run.steps["each"].result
    assert (played.statuses("each", "end"), played.run.status) == (["failed", "blocked"], "partial")
    assert found is not None
    assert (found.code, "2 of 3 items were denied; `tolerate` allows 0" in str(found.error)) == ("ITEMS_DENIED", True)
    again = Player(resumed(played.run, "p-r2", NOW)).play()
    for name in ("each[a]", "each[c]"):
        again.decide(name)
    assert (again.play().value("end"), again.run.status) == (["a", "b", "c"], "completed")
    assert again.called == ["each[a]", "each[c]", "end"]


def test_failures_and_denials_count_together_and_failures_alone_keep_items_from_beginning() -> None:
    tool = broken("each[b]")
    allowed = Player(plan(asking(["a", "b", "c"], tolerate=2), USES), tool).play()
    for name, approved in (("each[a]", False), ("each[b]", True), ("each[c]", True)):
        allowed.decide(name, approved)
    assert (allowed.play().value("end"), allowed.run.status) == ([None, None, "c"], "partial")

    beyond = Player(plan(asking(["a", "b", "c"], tolerate=1), USES), tool).play()
    for name, approved in (("each[a]", False), ("each[b]", True), ("each[c]", True)):
        beyond.decide(name, approved)
    assert (code_of(beyond.play(), "each"), beyond.statuses("end")) == ("ITEMS_DENIED", ["blocked"])
    assert beyond.called == ["each[b]", "each[c]"]


@pytest.mark.parametrize(
    "inside",
    [
        {"steps": [{"id": "in", "requiresApproval": True, **NOTE}]},
        {"switch": [{"steps": [{"id": "in", "requiresApproval": True, **NOTE}]}]},
        {"steps": [{"id": "in", "steps": [{"id": "at", "requiresApproval": True, **NOTE}]}]},
        {"steps": [{"id": "in", "forEach": ["{{item}}"], "requiresApproval": True, **NOTE}]},
        {"repeat": {"until": "length(@) > `0`", "limit": 2}, "requiresApproval": True, **NOTE},
    ],
    ids=["block", "switch", "block in a block", "loop", "round"],
)
def test_what_is_denied_deep_in_an_item_denies_the_item(inside: dict[str, Any]) -> None:
    loop = {"id": "each", "forEach": {"items": ["a", "b"], "key": "@", "maxParallel": 1}, **inside}
    played = Player(plan(loop, USES)).play()
    for approved in (False, True):
        first = next(iter(played.schedule.awaiting))
        assert f"[{'b' if approved else 'a'}]" in first
        played.decide(first, approved)
        played.play()
    assert (code_of(played, "each"), played.statuses("end")) == ("ITEMS_DENIED", ["blocked"])
    again = Player(resumed(played.run, "p-r2", NOW)).play()
    assert all("[a]" in name for name in again.schedule.awaiting), "the item that is done does not ask again"
    again.decide(next(iter(again.schedule.awaiting)))
    assert (again.play().run.status, again.called[-1]) == ("completed", "end")


def test_a_catch_takes_no_denial() -> None:
    inner = {"id": "in", "forEach": ["x"], "requiresApproval": True, **NOTE}
    caught = {"catch": [{"steps": [{"id": "mend", "tool": "note", "args": {"text": "mended"}}]}]}
    played = Player(plan({"id": "block", "steps": [inner], **caught})).play()
    played.decide("block.in[0]", False)
    assert (code_of(played.play(), "block"), played.called) == ("ITEMS_DENIED", [])


def test_a_resumed_plan_that_gets_the_value_of_a_tolerated_item_runs_again_what_used_the_list() -> None:
    after = {"id": "after", "tool": "note", "args": {"text": "{{end}}"}}
    aside = {"id": "aside", "tool": "note", "args": {"text": "x"}}
    played = Player(plan(asking(["a", "b"], tolerate=1), USES, after, aside)).play()
    played.decide("each[a]")
    played.decide("each[b]", False)
    assert (played.play().value("after"), played.run.status) == ('["a", null]', "partial")
    again = Player(resumed(played.run, "p-r2", NOW)).play()
    again.decide("each[b]")
    assert (again.play().value("after"), again.run.status) == ('["a", "b"]', "completed")
    assert again.called == ["each[b]", "end", "after"]
    one = Player(rerun_only(played.run, "aside", "p-r3", NOW)).play()
    assert (one.called, one.value("after")) == (["aside"], '["a", null]'), "a rerun of one step leaves the rest alone"
