"""What goes with a segment does not grow with what has been done, and is enough to make the same calls."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.features.express.carrying import FEW_STAMPS, Unlisted, Unseen, carried
from plansurvive.features.express.segment import Bounds, Segment
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.file_stamps import stamp_of
from plansurvive.plans.flow.opened import Kept, Opened
from plansurvive.plans.model import Step
from plansurvive.plans.run import Result, Run, Status, run_of
from plansurvive.plans.step_state import Outcome, StepState
from tests.features.express.segmented import Segmented
from tests.plans.building import NOW
from tests.plans.flow.player import Failure, Player, note, plan

ITEMS, STEPS = 300, 32
LISTED = note("list", [f"item {index}" for index in range(ITEMS)])


def over(items: Any, **rule: Any) -> dict[str, Any]:
    return note("s", "{{item}}") | {"forEach": {"items": items, **rule}}


def played(*steps: dict[str, Any], **fields: Any) -> Segmented:
    """Played in segments, and ended as without."""
    plain, found = Player(plan(*steps, **fields)).play(), Segmented(plan(*steps, **fields))
    found.bounds = Bounds(steps=STEPS)
    found.play()
    assert list(found.run.steps) == list(plain.run.steps)
    assert [found.value(name) for name in found.run.steps] == [plain.value(name) for name in plain.run.steps]
    assert not found.ended, "a segment made calls that the workflow does not make"
    return found


@pytest.mark.parametrize(
    "steps",
    [
        [over([f"item {index}" for index in range(ITEMS)])],
        [LISTED, over("list")],
        [LISTED, over("list", key="@")],
        [{"id": "b", "steps": [over(list(range(ITEMS)))]}],
        [{"id": "e", "forEach": {"items": [1, 2], "maxParallel": 1}, "steps": [over(list(range(ITEMS // 2)))]}],
        [over(list(range(ITEMS))), note("after", "$s")],
    ],
    ids=["written", "listed", "with keys", "in a block", "in a loop", "used"],
)
def test_what_goes_along_does_not_grow_with_the_items_that_have_ended(steps: list[dict[str, Any]]) -> None:
    found = played(*steps)
    assert len(found.segments) <= ITEMS // STEPS + 5
    later = sorted(found.sizes)[:-2]  # two may have the whole list: where it is made, and where it is used
    assert max(later) < 1.6 * sorted(later)[len(later) // 2]


def test_a_loop_of_skipped_items_beside_another_one_stays_in_step() -> None:
    rare = note("r", "{{item}}") | {"forEach": {"items": list(range(90))}, "when": "item == `89`"}
    found = played(rare, over(list(range(70))), note("last", "$s"), maxParallel=1)
    assert found.statuses("r[88]", "r[89]") == ["skipped", "completed"]


def test_loops_go_on_in_turn_as_in_the_workflow() -> None:
    found = played(*(over(list(range(70))) | {"id": name} for name in ("a", "b", "c")), maxParallel=1)
    assert not found.alone


def test_a_failure_before_the_window_counts_where_the_loop_ends() -> None:
    def tool(name: str, args: dict[str, Any]) -> Any:
        if name in ("s[3]", "s[80]"):
            raise Failure("BROKEN")
        return args["text"]

    loop = over(list(range(150)), tolerate="1%")
    plain, found = Player(plan(loop), tool).play(), Segmented(plan(loop), tool)
    found.bounds = Bounds(steps=STEPS)
    found.play()
    assert (found.run.status, found.run.steps["s"].result) == (plain.run.status, plain.run.steps["s"].result)
    assert not found.ended


def at_work(run: Run, ended: range) -> Schedule:
    """The loop `s` has begun, and of its items these have ended."""
    schedule = Segmented(run).schedule
    schedule.start("s", NOW)
    rule = run.plan.steps[0].for_each
    assert rule is not None
    assert isinstance(rule.items, list)
    schedule.open("s", Opened(items=rule.items), NOW)
    while run.opened["s"].began < ended.stop and schedule.open_next(10**6, NOW):
        pass
    for index in ended:
        schedule.start(f"s[{index}]", NOW)
        result = Result(ok=True, value="ended", timestamp=NOW)
        schedule.settle(f"s[{index}]", Outcome(Status.COMPLETED, result), NOW)
    return schedule


def test_behind_an_item_that_takes_long_those_that_have_ended_are_no_more_than_a_status() -> None:
    schedule = at_work(plan(over(list(range(900)))), range(1, 600))
    goes = carried(schedule, ["s"], 256)
    small = run_of(goes.run)
    assert goes.partial == {"s": 900 - 600 - 256}
    assert small.steps["s[5]"] == StepState(status=Status.COMPLETED)
    segment = Segment(Schedule(small), NOW, parallel=2, partial=goes.partial)
    assert [made.step.id for made in segment.begin(NOW)] == ["s[0]", "s[600]"]


def test_of_what_a_step_has_waited_for_only_what_it_uses_goes_along() -> None:
    steps = [note(name, name) for name in "abc"]
    player = Segmented(plan(*steps, note("d", "$a") | {"dependsOn": ["b"]}, note("e", "x") | {"dependsOn": ["c", "d"]}))
    schedule = player.schedule
    for name in "abc":
        schedule.start(name, NOW)
        schedule.settle(name, Outcome(Status.COMPLETED, Result(ok=True, value=name, timestamp=NOW)), NOW)
    small = run_of(carried(schedule, ["d", "e"], 256).run)
    assert ([step.id for step in small.plan.steps], list(small.steps)) == (["a", "d", "e"], ["a", "d", "e"])
    assert [step.depends_on for step in small.plan.steps] == [[], [], ["d"]]
    segment = Segment(Schedule(small), NOW)
    assert [(made.step.id, made.filled.args) for made in segment.begin(NOW)] == [("d", {"text": "a"})]


def test_the_items_of_a_loop_are_looked_at_once() -> None:
    schedule, unlisted = at_work(plan(over([*range(900), "$a"])), range(1)), Unlisted()
    run, step = schedule.run, schedule.run.plan.steps[0]
    kept = unlisted.of(step, run)
    assert kept.for_each is not None
    assert (kept.for_each.items, unlisted.of(step, run) is kept) == (["$a"], True)
    edited = step.model_copy(update={"description": "as edited"})
    assert unlisted.of(edited, run).description == "as edited"


def test_an_item_knows_its_place_in_the_whole_list() -> None:
    loop = note("s", "{{index}} {{key}} {{item}}") | {"forEach": {"items": [f"i{number}" for number in range(900)]}}
    goes = carried(at_work(plan(loop), range(600)), ["s"], 256)
    made = Segment(Schedule(run_of(goes.run)), NOW, parallel=1, partial=goes.partial).begin(NOW)
    assert [each.filled.args for each in made] == [{"text": "600 600 i600"}]


def test_of_what_an_earlier_run_has_done_only_the_items_of_the_window_go_along() -> None:
    run = plan(over(list(range(900))))
    run.kept = Kept(
        steps={f"s[{index}]": StepState(calls=3) for index in range(600, 900)}, readers={"a": ["s"]},
        items={f"s[{index}]": "mark" for index in range(900)},
    )  # fmt: skip
    kept = run_of(carried(at_work(run, range(600)), ["s"], 100).run).kept
    assert list(kept.steps) == list(kept.items) == [f"s[{index}]" for index in range(600, 700)]
    assert not kept.readers


def test_a_step_that_was_edited_in_a_loop_finds_what_it_uses() -> None:
    run = plan(note("list", [1, 2]), note("other", "found"), over("list"))
    schedule = Segmented(run).schedule
    for name, value in (("list", [1, 2]), ("other", "found")):
        schedule.start(name, NOW)
        schedule.settle(name, Outcome(Status.COMPLETED, Result(ok=True, value=value, timestamp=NOW)), NOW)
    schedule.start("s", NOW)
    run.overrides = {"s[1]": Step.model_validate(note("s", "{{list}} {{other}}"))}
    run.redraw()
    schedule.open("s", Opened(items=[1, 2], began=2), NOW)
    goes = carried(schedule, ["s"], 256)
    made = Segment(Schedule(run_of(goes.run)), NOW).begin(NOW)
    assert [each.filled.args["text"] for each in made][-1] == "[1, 2] found"


def stamped(paths: int, item: str) -> Schedule:
    """A run that has seen files, and a loop over one item that reads one."""
    read = {"id": "s", "tool": "read_file", "args": {"path": f"{item}.md"}, "forEach": {"items": ["p700", "new"]}}
    run = plan(read)
    run.files.stamps = {f"d/p{index}.md": stamp_of(b"x") for index in range(paths)}
    return at_work(run, range(0))


@pytest.mark.parametrize(("item", "made"), [("d/{{item}}", 2), ("d/p70{{index}}", 1)])
def test_a_call_whose_file_stamp_is_not_here_is_left(item: str, made: int) -> None:
    schedule = stamped(1_000, item)
    goes = carried(schedule, ["s"], 256)
    assert "d/p700.md" in run_of(goes.run).files.stamps
    segment = Segment(Schedule(run_of(goes.run)), NOW, unseen=Unseen(goes.unseen))
    assert (len(segment.begin(NOW)), len(segment.left)) == (made, 2 - made)
    assert all("the file stamp of d/p70" in why for why in segment.left.values())


def test_control_without_digests_it_would_be_made_as_if_nobody_had_seen_the_file() -> None:
    goes = carried(stamped(1_000, "d/p70{{index}}"), ["s"], 256)
    assert len(Segment(Schedule(run_of(goes.run)), NOW).begin(NOW)) == 2, "d/p701.md would be made as well"


def test_few_stamps_go_along_whatever_they_are_of() -> None:
    goes = carried(stamped(FEW_STAMPS, "x"), ["s"], 256)
    assert (len(run_of(goes.run).files.stamps), goes.unseen) == (FEW_STAMPS, "")
