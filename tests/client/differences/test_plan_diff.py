"""The difference between two plans: what a person sees after an edit or a regeneration."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plansurvive.client.differences.plan_diff import PlanDiff, plan_diff, plan_of
from plansurvive.client.differences.plan_rows import plan_rows


def step(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "tool": "write_file", "args": {"path": f"{name}.txt", "content": "x"}, **fields}


def between(old: list[dict[str, Any]], new: list[dict[str, Any]], **head: Any) -> PlanDiff:
    return plan_diff(plan_of({"steps": old, "version": 1}), plan_of({"steps": new, "version": 2, **head}))


def kinds(diff: PlanDiff) -> dict[str, str]:
    return {each.step_id: each.kind for each in diff.steps}


def test_two_versions_with_the_same_content_do_not_differ() -> None:
    assert between([step("a")], [step("a")]).is_empty


def test_steps_added_removed_and_changed_are_told_apart_with_their_fields() -> None:
    new = [step("a", args={"path": "other.txt", "content": "x"}, dependsOn=["c"]), step("c", description="Write c")]
    diff = between([step("a"), step("b")], new, title="Better")
    assert kinds(diff) == {"a": "changed", "c": "added", "b": "removed"}
    assert [(each.path, each.was, each.now) for each in diff.steps[0].fields] == [
        ("args.path", "a.txt", "other.txt"),
        ("dependsOn", None, '["c"]'),
    ]
    assert plan_rows(diff) == [
        "title: none -> Better",
        "~ a  write_file",
        "    args.path: a.txt -> other.txt",
        '    dependsOn: none -> ["c"]',
        "+ c  write_file  Write c  (after a)",
        "    args.path: c.txt",
        "    args.content: x",
        "- b  write_file",
    ]
    assert diff.counts == {"added": 1, "removed": 1, "changed": 1}


def test_one_step_that_moves_past_many_is_the_only_one_that_moved() -> None:
    names = [f"s{number}" for number in range(20)]
    diff = between([step(name) for name in names], [step(name) for name in ["s19", *names[:19]]])
    assert [(each.step_id, each.kind, each.after) for each in diff.steps] == [("s19", "moved", None)]
    assert plan_rows(diff) == ["↕ s19  write_file  (moved first)"]


def test_a_removed_step_stands_where_it_was() -> None:
    diff = between([step("a"), step("b"), step("c")], [step("a", notes="n"), step("c", notes="n")])
    assert list(kinds(diff)) == ["a", "b", "c"]


def test_steps_inside_blocks_are_compared_by_their_paths() -> None:
    def block(content: str, extra: bool) -> dict[str, Any]:
        inner = [step("thumb", args={"path": "t", "content": content}), *([step("more")] if extra else [])]
        return {"id": "resize", "steps": inner, "catch": [{"codes": ["TIMEOUT"], "steps": [step("tell")]}]}

    diff = between([block("old", False)], [block("new", True)])
    assert kinds(diff) == {"resize.thumb": "changed", "resize.more": "added"}
    assert diff.steps[1].after == "resize.thumb"


def test_other_codes_of_a_catch_are_a_change_of_the_block() -> None:
    def block(code: str) -> dict[str, Any]:
        return {**step("a"), "catch": [{"codes": [code], "steps": [step("tell")]}]}

    [changed] = between([block("TIMEOUT")], [block("NOT_FOUND")]).steps
    assert [(each.path, each.now) for each in changed.fields] == [("catch.0", '{"codes": ["NOT_FOUND"]}')]


def test_a_long_text_is_shown_as_the_lines_that_differ() -> None:
    lines = [f"line {number}" for number in range(50)]
    old, new = step("a", args={"content": "\n".join(lines)}), step("a", args={"content": "\n".join([*lines, "end"])})
    [changed] = between([old], [new]).steps
    assert changed.fields[0].rows[-1] == "+end"
    assert len(changed.fields[0].rows) < 8


def test_characters_that_nobody_sees_are_spelt_out() -> None:
    [changed] = between([step("a")], [step("a", description="del\u202eete\x1b[2J")]).steps
    assert changed.fields[0].now == "del\\u{202e}ete\\u{1b}[2J"
    assert all("\x1b" not in row and "\u202e" not in row for row in plan_rows(between([], [step("a", notes="\x1b")])))


def test_a_huge_value_makes_a_bounded_diff() -> None:
    [changed] = between([step("a")], [step("a", args={"content": "y\n" * 200_000})]).steps
    assert sum(map(len, changed.fields[-1].rows)) < 50_000


@given(st.permutations(["a", "b", "c", "d", "e", "f"]))
def test_putting_the_moved_steps_behind_what_is_named_gives_the_new_order(order: list[str]) -> None:
    old = ["a", "b", "c", "d", "e", "f"]
    diff = between([step(name) for name in old], [step(name) for name in order])
    moved = {each.step_id for each in diff.steps}
    rebuilt = [name for name in old if name not in moved]
    for each in diff.steps:
        rebuilt.insert(rebuilt.index(each.after) + 1 if each.after else 0, each.step_id)
    assert rebuilt == order
