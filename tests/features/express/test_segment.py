"""Segments: the same calls, values and ends as without, and what is left to the workflow."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from plansurvive.features.express.carrying import carried
from plansurvive.features.express.model import ExpressFact
from plansurvive.features.express.reach import reach
from plansurvive.features.express.segment import Bounds, Segment
from plansurvive.plans.activity_io import Facts, Return
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.run import Result, Run, Status, run_of
from plansurvive.plans.step_state import Outcome
from tests.features.express.segmented import Segmented
from tests.plans.building import NOW, TOOLS, spec
from tests.plans.flow import test_constructs, test_loops
from tests.plans.flow.player import Failure, Player, broken, note, plan

QUICK = {name: each.model_copy(update={"quick": not each.durable}) for name, each in TOOLS.items()}

ASKED = {"express": ExpressFact(on=True)}


class Reckless(Segment):
    """Goes on after a failure: the control."""

    def failed(self, step_id: str) -> None:
        """As if nothing else could follow from it."""
        del self.in_flight[step_id]


def reused() -> list[tuple[ModuleType, str]]:
    """The tests of blocks and loops that need no fixture and do not look at what runs at the same time."""
    return [
        (module, name)
        for module in (test_constructs, test_loops)
        for name, function in vars(module).items()
        if name.startswith("test_") and not inspect.signature(function).parameters and "window" not in name
    ]


@pytest.mark.parametrize(("module", "name"), reused(), ids=[name for _, name in reused()])
def test_blocks_and_loops_are_as_without(module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used = list[Segmented]()

    def segmented(*args: Any, **more: Any) -> Segmented:
        used.append(Segmented(*args, **more))
        return used[-1]

    monkeypatch.setattr(module, "Player", segmented)
    function: Callable[[], None] = vars(module)[name]
    function()
    assert not any(player.ended for player in used), "calls were made that the workflow does not make"


def chain(length: int, **fields: Any) -> Run:
    """Each step adds to the value of the one before."""
    steps = [note("s0", "0"), *(note(f"s{i}", f"{{{{s{i - 1}}}}}.{i}") for i in range(1, length))]
    return plan(*steps, **fields)


def test_a_chain_is_one_segment() -> None:
    played = Segmented(chain(20)).play()
    assert (played.segments, played.alone, played.run.status) == ([20], [], "completed")
    assert played.value("s19") == Player(chain(20)).play().value("s19")


def test_a_segment_ends_after_so_many_steps() -> None:
    played = Segmented(chain(20))
    played.bounds = Bounds(steps=8)
    played.play()
    assert (played.segments, played.alone) == ([8, 8, 4], [])


def begun(run: Run, **fields: Any) -> Segment:
    """A segment at the beginning of a run."""
    run.facts = run.facts.model_copy(update={"tools": QUICK, "parts": ASKED})
    schedule = Schedule(run)
    schedule.begin(NOW)
    return Segment(schedule, NOW, **fields)


def names(segment: Segment, seconds: float = 0.0) -> list[str]:
    """The calls that begin after so many seconds."""
    return [made.step.id for made in segment.begin(NOW + timedelta(seconds=seconds))]


def end(segment: Segment, *steps: str, size: int = 1) -> None:
    """Calls return."""
    for each in steps:
        segment.completed(each, Return(value=1, duration=0), size, NOW)


def test_no_step_begins_after_its_seconds() -> None:
    segment = begun(chain(3))
    assert names(segment) == ["s0"]
    end(segment, "s0")
    assert names(segment, 0.999) == ["s1"]
    end(segment, "s1")
    assert names(segment, 1.0) == []


def test_no_step_begins_once_the_outcomes_are_long_enough() -> None:
    segment = begun(chain(3), bounds=Bounds(bytes=1_000))
    assert names(segment) == ["s0"]
    end(segment, "s0", size=999)
    assert names(segment) == ["s1"]
    end(segment, "s1")
    assert names(segment) == []


def test_calls_are_made_side_by_side_up_to_the_limit() -> None:
    segment = begun(plan(*(note(f"s{i}") for i in range(5))), parallel=2)
    assert names(segment) == ["s0", "s1"]
    assert names(segment) == []
    end(segment, "s1")
    assert names(segment) == ["s2"]


def test_no_more_items_are_in_a_segment_at_once_than_the_window_allows() -> None:
    segment = begun(plan(note("s", "{{item}}") | {"forEach": {"items": list(range(9)), "maxParallel": 2}}))
    assert names(segment) == ["s[0]", "s[1]"]
    end(segment, "s[0]")
    assert names(segment) == ["s[2]"]


SLEEP = {"id": "x", "tool": "sleep", "args": {"seconds": 5}}


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (note("x") | {"requiresApproval": True}, "it needs approval"),
        (SLEEP, "it waits"),
        (note("x") | {"queue": "gpu"}, "it is bound to the task queue gpu"),
        (note("x") | {"repeatable": False}, "it must not be repeated"),
    ],
)
def test_what_a_segment_may_not_do_is_left_with_what_follows_from_it(step: dict[str, Any], why: str) -> None:
    segment = begun(plan(step, note("after", None, "x"), note("a"), note("b", "$a")))
    assert names(segment) == ["a"]
    end(segment, "a")
    assert names(segment) == ["b"]
    end(segment, "b")
    assert (names(segment), segment.left) == ([], {"x": why})


@pytest.mark.parametrize(
    ("tool", "facts", "why"),
    [
        (spec("x"), {}, "x is not declared quick"),
        (spec("x", quick=True, server="s"), {}, "x is not a tool of the worker's own"),
        (spec("x", quick=True, repeatable=False), {}, "it must not be repeated"),
        (
            spec("x", quick=True, effect="keyed"),
            {"own_files": True},
            "it changes files, which belong to the plan's host",
        ),
        (spec("x", quick=True, effect="pure"), {"own_files": True}, ""),
    ],
)
def test_what_a_tool_says_decides(tool: ToolSpec, facts: dict[str, Any], why: str) -> None:
    run = plan(
        {"id": "x", "tool": "x", "args": {}}, facts=Facts(tools={"x": tool}, workspace="/w", parts=ASKED, **facts)
    )
    schedule = Schedule(run)
    schedule.begin(NOW)
    segment = Segment(schedule, NOW)
    assert (names(segment), segment.left) == (([], {"x": why}) if why else (["x"], {}))


def test_what_an_earlier_segment_has_left_is_in_no_other_one() -> None:
    segment = begun(plan(note("a"), note("b")), barred=frozenset({"a"}))
    assert (names(segment), segment.left) == (["b"], {"a": "an earlier segment left it"})


def test_of_a_wide_plan_only_the_calls_of_the_segment_are_looked_at_when_it_is_settled() -> None:
    segment = begun(plan(*(note(f"s{i}") for i in range(100))), only={("s0", 1), ("s1", 1)})
    assert (names(segment), segment.left) == (["s0", "s1"], {})


def test_a_round_that_has_to_wait_is_left() -> None:
    segment = begun(plan(note("x", 1) | {"repeat": {"until": "@ == `2`", "delay": 5.0}}))
    assert names(segment) == ["x#1"]
    end(segment, "x#1")
    assert (names(segment), segment.left) == ([], {"x": "it waits for its next round"})


def test_what_closes_a_plan_is_in_no_segment() -> None:
    undone = note("a") | {"undo": {"tool": "note", "args": {"text": "undone"}}}
    run = plan(undone, note("b", None, "a"), rollback=True, **{"finally": [note("last")]})
    played = Segmented(run, broken("b")).play()
    assert played.called == ["a", "b", "a.undo", "finally.last"]
    assert (played.alone, played.segments[0]) == (["a.undo", "finally.last"], 2)


def loop(**rule: Any) -> Run:
    return plan(note("s", "{{item}}") | {"forEach": {"items": list(range(50)), **rule}})


def failing(name: str, args: dict[str, Any]) -> Any:
    if name in ("s[3]", "s[6]"):
        raise Failure("BROKEN")
    return args["text"]


def test_nothing_begins_after_a_failure_until_the_workflow_has_decided_about_it() -> None:
    run, same = loop(tolerate=1, maxParallel=1), loop(tolerate=1, maxParallel=1)
    played, plain = Segmented(run, failing).play(), Player(same, failing).play()
    assert (played.called, played.segments) == (plain.called, [4, 3])
    assert played.run.status == plain.run.status == "partial"


def test_control_a_segment_that_goes_on_makes_calls_that_the_workflow_does_not_make() -> None:
    assert not Segmented(loop(maxParallel=2), failing).play().ended
    assert Segmented(loop(maxParallel=2), failing, kind=Reckless).play().ended


def done(run: Run, *values: Any) -> Schedule:
    """The first steps of a run have completed with these values."""
    run.facts = run.facts.model_copy(update={"tools": QUICK, "parts": ASKED})
    schedule = Schedule(run)
    schedule.begin(NOW)
    for name, value in zip(list(run.steps), values, strict=False):
        schedule.start(name, NOW)
        result = Result(ok=True, timestamp=NOW, **(value if isinstance(value, dict) else {"value": value}))
        schedule.settle(name, Outcome(Status.COMPLETED, result), NOW)
    return schedule


def test_only_what_can_be_reached_goes_along_and_only_the_values_that_it_uses() -> None:
    rows = (note("used"), note("unused"), note("other"), note("waits", None, "ask"), note("ask"))
    run = plan(*rows, note("a", "$used", "unused"), note("b", "$a"), note("c", "$b$waits"))
    schedule = done(run, "canary-used", "canary-unused", "canary-other")
    within = reach(schedule, ["a"], 256)
    assert within == ["a", "b"]  # c waits for what nothing here can do
    text = carried(schedule, within, 256).run
    assert ("canary-used" in text, "canary-unused" in text, "canary-other" in text) == (True, False, False)
    copy = Segment(Schedule(run_of(text)), NOW)
    assert [made.filled.args for made in copy.begin(NOW)] == [{"text": "canary-used"}]


def test_what_goes_along_does_not_grow_with_the_plan() -> None:
    def length(steps: int) -> int:
        schedule = done(chain(steps + 3), *("x" * 1_000 for _ in range(steps)))
        return len(carried(schedule, reach(schedule, schedule.ready, 256), 256).run)

    assert length(2_000) < length(20) + 200


def test_a_reach_is_bounded() -> None:
    schedule = done(chain(50))
    assert reach(schedule, schedule.ready, 7) == [f"s{i}" for i in range(7)]


def random_steps(dice: random.Random, depth: int = 2) -> list[dict[str, Any]]:
    """Steps that use each other's values, some of them blocks, loops, rounds or choices; some fail."""
    found = list[dict[str, Any]]()
    for index in range(dice.randint(2, 6)):
        name, before = f"s{index}", [each["id"] for each in found]
        needs = dice.sample(before, min(len(before), dice.randint(0, 2)))
        row: dict[str, Any] = {"id": name, "dependsOn": needs}
        uses = dice.choice([*before, None])
        kind = dice.choice(
            ["call", "call", "call", "block", "each", "repeat", "switch", "sleep"] if depth else ["call"]
        )
        call = {"tool": "note", "args": {"text": f"${uses}" if uses else dice.randint(0, 9)}}
        if kind == "block":
            row["steps"] = random_steps(dice, depth - 1)
        elif kind == "each":
            row |= call | {"forEach": {"items": list(range(dice.randint(0, 7))), "tolerate": dice.randint(0, 2)}}
            row["args"] = {"text": "{{item}}"}
        elif kind == "repeat":
            row |= call | {"args": {"text": "{{round}}"}, "repeat": {"until": "@ >= `2`", "limit": dice.randint(1, 3)}}
        elif kind == "switch":
            case = {"when": f"{uses} == `3`" if uses else "`true`", "steps": random_steps(dice, depth - 1)}
            row["switch"] = [case, {"steps": random_steps(dice, depth - 1)}]
        elif kind == "sleep":
            row |= {"tool": "sleep", "args": {"seconds": 0}} if depth == 2 and index else call
        else:
            row |= call
        if dice.random() < 0.15:
            row["catch"] = [{"steps": [note("caught", "caught")]}]
        if dice.random() < 0.15 and uses:
            row["when"] = f"{uses} != `4`"
        if dice.random() < 0.1:
            row["critical"] = True
        found.append(row)
    return found


def some_fail(seed: int) -> Callable[[str, dict[str, Any]], Any]:
    """A tool that fails in every tenth step, whichever these are."""

    def tool(name: str, args: dict[str, Any]) -> Any:
        if random.Random(f"{seed} {name}").random() < 0.1:
            raise Failure("BROKEN")
        return args.get("text")

    return tool


def told(player: Player) -> dict[str, Any]:
    """How all steps have ended."""
    steps = player.run.steps.items()
    found = {name: (state.status, state.result and state.result.code, player.value(name)) for name, state in steps}
    return found | {"": player.run.status}


@pytest.mark.parametrize("seed", range(60))
def test_random_plans_end_as_without(seed: int) -> None:
    steps = random_steps(random.Random(seed))
    bounds = Bounds(steps=random.Random(seed).choice([1, 3, 256]))
    plain = Player(plan(*steps, maxParallel=1), some_fail(seed)).play()
    played = Segmented(plan(*steps, maxParallel=1), some_fail(seed))
    played.bounds = bounds
    played.play()
    assert told(played) == told(plain)
    assert sorted(played.called) == sorted(plain.called)
    assert not played.ended
