"""In which worktree a step works, and what goes along to what it starts. Pure: plain values in and out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from plansurvive.features.worktrees.in_views import IN_VIEWS
from plansurvive.features.worktrees.language import LANGUAGE
from plansurvive.features.worktrees.model import MERGE, Choice, ConflictPlace, WorktreeChoice, WorktreeConflict
from plansurvive.features.worktrees.rules import RULES, choose, conflict_of, order_of
from plansurvive.plans.activity_io import Call, Facts, Return
from plansurvive.plans.definition.language import Language
from plansurvive.plans.execution.undo_run import left_to_undo, undoing, with_undone, with_undos
from plansurvive.plans.model import Plan, Retry, ToolSpec
from plansurvive.plans.run import Options, Result, Run, Status, run_of
from plansurvive.plans.run.feature import RuleSet

RULE_SET = RuleSet([RULES])


def run(*steps: dict[str, Any], **options: Any) -> Run:
    plan = Plan.model_validate(
        {"id": "p", "title": "t", "steps": [{"description": "", "args": {}, **each} for each in steps]}
    )
    tools = {name: ToolSpec(name=name, description="", args_schema={}) for name in ("t", MERGE)}
    return Run.of(plan, Options(parts=options), Facts(tools=tools), {})


def test_a_plan_or_agent_below_a_step_works_in_its_worktree_and_a_next_run_in_the_same() -> None:
    found = run({"id": "s", "tool": "t", "worktree": True, "description": "Fix it"})
    step = found.plan.steps[0]
    order = order_of(found, step)
    assert order is not None
    assert (order.plan, order.tree, order.step, order.title) == ("p", "s", "s", "Fix it")
    (part,) = RULE_SET.parts_for_child(found, step, None).values()
    below = run({"id": "call_1", "tool": "t"}, worktrees=part)
    assert order_of(below, below.plan.steps[0]) == order
    assert RULE_SET.parts_for_next(found) == {"worktrees": WorktreeChoice(origin="p")}
    again = run({"id": "s", "tool": "t", "worktree": True}, worktrees=WorktreeChoice(origin="first"))
    assert order_of(again, again.plan.steps[0]).plan == "first"  # type: ignore[union-attr]


def test_an_approval_says_in_which_worktree_its_call_is_made() -> None:
    found = run({"id": "block", "worktree": True, "steps": [{"id": "s", "tool": "t"}]}, {"id": "free", "tool": "t"})
    below = run({"id": "call_1", "tool": "t"}, worktrees=WorktreeChoice(plan="p", tree="block", step="block.s"))
    seam = IN_VIEWS.card
    assert seam is not None
    assert seam(below, below.plan.steps[0]) == {"workspace": "worktree of 'block' of plan p"}
    assert seam(found, found.plan.steps[1]) == {}


def test_a_plan_without_worktrees_has_nothing_of_them_in_its_history() -> None:
    found = run({"id": "s", "tool": "t"})
    assert order_of(found, found.plan.steps[0]) is None
    assert RULE_SET.parts_for_next(found) == RULE_SET.parts_for_child(found, found.plan.steps[0], None) == {}
    assert found.options.parts == {}
    assert "worktree" not in found.plan.model_dump_json(exclude_defaults=True)


NOW = datetime(2026, 11, 28, tzinfo=UTC)
PLACES = {
    name: ConflictPlace(path="a.txt", key="1 2 3", index=index) for index, name in enumerate(("a.txt:1", "a.txt:7"))
}
ASKED = {"question": "What counts?", "schema": {"type": "object"}}
MERGING = {"id": "m", "tool": MERGE, "args": {"steps": ["one"]}}


def failed(found: Run, part: Any) -> bool:
    left = Return(duration=0.0, parts={} if part is None else {"worktrees": part})
    result = Result(ok=False, error="no", code="WORKTREE_CONFLICT", duration=0, timestamp=NOW)
    return RULE_SET.failed(found, found.plan.steps[0], left, result, NOW)


def test_what_is_chosen_about_a_conflict_goes_with_the_next_call_and_survives() -> None:
    found = run(MERGING)
    assert not failed(found, WorktreeConflict(what="x", question=ASKED, places=PLACES))
    choose(found, "m", {"a.txt:1": "theirs", "a.txt:7": "other", "a.txt:7 other": "VII"})
    chosen = [Choice(place=PLACES["a.txt:1"], take="theirs"), Choice(place=PLACES["a.txt:7"], take="other", text="VII")]
    assert conflict_of(found, "m") == WorktreeConflict(chosen=chosen)
    again = run_of(found.model_dump_json())
    call = Call(args={}, plan_id="p", step_id="m", key="k", workspace="/w", timeout=1.0, retry=Retry())
    order = RULE_SET.extended(again, again.plan.steps[0], call).parts["worktrees"]
    assert order.chosen == chosen
    failed(
        again, WorktreeConflict(what="x", question=ASKED, places={"b.txt": ConflictPlace(path="b.txt", key="4 5 6")})
    )
    choose(again, "m", {"b.txt": "ours", "a.txt:1": "ours"})
    assert [each.take for each in conflict_of(again, "m").chosen] == ["theirs", "other", "ours"]
    RULE_SET.settled(again, again.plan.steps[0], Return(duration=0.0), Result(ok=True, duration=0, timestamp=NOW))
    assert again.steps["m"].parts == {}


def test_a_conflict_that_is_no_question_asks_nothing() -> None:
    for part in (
        None,
        {"places": 3},
        WorktreeConflict(question={"question": "x", "schema": {"type": 3}}),
        WorktreeConflict(),
    ):
        found = run(MERGING)
        failed(found, part)
        assert conflict_of(found, "m").question == {}
    choose(found, "m", "no object")
    assert conflict_of(found, "m").chosen == []


def test_an_undo_reverts_a_merge_that_says_no_undo_and_a_rollback_does_not() -> None:
    merge = {**MERGING, "id": "block", "tool": None, "args": {}, "steps": [MERGING]}
    own = {**MERGING, "id": "own", "undo": {"tool": "t", "args": {}}}
    found = run({k: v for k, v in merge.items() if v is not None}, own)
    found.language = Language.of([LANGUAGE])
    found.steps["own"].status = Status.COMPLETED
    assert left_to_undo(found) == ["own"]
    found.steps["own"].status = Status.PENDING
    plain = run(MERGING)
    plain.language = Language.of([LANGUAGE])
    plain.steps["m"].status = Status.COMPLETED
    assert left_to_undo(plain) == []
    undone = with_undos(plain)
    assert left_to_undo(undone) == ["m"]
    assert [step.undo.tool for step in undone.plan.steps if step.undo] == ["revert_merge"]
    assert with_undos(found).plan.steps[1].undo.tool == "t"  # type: ignore[union-attr]
    assert with_undos(found).plan.steps[0].steps[0].undo.tool == "revert_merge"  # type: ignore[index, union-attr]
    new = undoing(undone, "p-undo", NOW)
    assert with_undone(plain, new).plan is plain.plan
