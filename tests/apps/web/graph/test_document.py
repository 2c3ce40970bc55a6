"""The graph as JSON: small, complete, and the same for as long as nothing happens."""

from __future__ import annotations

import json
from typing import Any

from plansurvive.apps.web.graph.document import document, document_of_plan, tag
from plansurvive.plans.run import PlanStatus
from tests.apps.web.graph.views import MAPPED, layered, plan, step, view, written


def test_rows_name_their_parents_and_edges_their_rows() -> None:
    found = document(view(MAPPED))
    rows, names = found["nodes"], [row[0] for row in found["nodes"]]
    assert (found["version"], found["seq"], found["plan"], found["total"]) == (1, 7, "running", len(rows))
    parents = {row[0]: names[row[6]] for row in rows if row[6] >= 0}
    assert parents["resize[b.png]"] == "resize"
    assert parents["publish.catch.say"] == "publish.catch"
    edges = {(names[before], names[after]) for before, after in found["edges"]}
    assert {("list", "resize"), ("publish.upload", "publish.verify"), ("publish", "publish.catch")} <= edges
    loop = rows[names.index("resize")]
    assert "1 failed" in loop[7]
    assert loop[8] == {"completed": 1, "failed": 1, "awaiting approval": 1}
    assert rows[names.index("resize[c.png]")][4:6] == ["ready", "approval"]


def test_parents_come_before_what_is_inside_them() -> None:
    rows = document_of_plan(plan(layered(22, 97)))["nodes"]
    assert all(row[6] < index for index, row in enumerate(rows))
    assert sum(row[2] != "fold" for row in rows) == 22 * 97


def test_a_plan_of_thousands_of_steps_is_a_small_document() -> None:
    steps = layered(22, 97)
    text = json.dumps(document_of_plan(plan(steps)), separators=(",", ":"))
    assert len(text) < 100 * len(steps)


def test_the_tag_changes_with_each_event_and_each_version() -> None:
    one = view([step("a")])
    changes: list[dict[str, Any]] = [{"seq": 8}, {"version": 2}, {"status": PlanStatus.COMPLETED}]
    assert len({tag(one), *(tag(one.model_copy(update=each)) for each in changes)}) == 4
    assert tag(view([step("a")])) == tag(one)


def test_a_step_that_a_draft_does_not_have_ends_no_edge() -> None:
    found = document_of_plan(plan([written("a", ["gone"]), written("b", ["a"])]))
    assert found["edges"] == [[0, 1]]
