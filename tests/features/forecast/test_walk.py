"""What a plan would do, found out without calling a tool: what is known, and what is honestly not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.cache.model import CacheChoice
from plansurvive.features.children.foresight import below
from plansurvive.features.children.model import LoadedPlan
from plansurvive.features.children.orders import Source
from plansurvive.features.forecast.model import Below, ForeseenChange, ForeseenStep, Taken
from plansurvive.features.forecast.walk import MAX_STEPS, Walk
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model import Step
from plansurvive.plans.run import Options, Run
from plansurvive.plans.run.feature import RuleSet
from tests.plans.building import NOW, TOOLS, run_of, spec, step

LOOK = spec("look", {"text": {}}, effect="pure", reads="reported", outside=False)
PUT = spec("put", {"text": {}}, effect="keyed", reads="reported", outside=False)
PLAN = load_tools(())["plan"].spec
FACTS = Facts(tools={**TOOLS, "look": LOOK, "put": PUT, "plan": PLAN}, workspace="/w")


@dataclass
class Ground:
    """A machine with these earlier results, by step; it notes what it was asked."""

    results: Mapping[str, Any] = field(default_factory=dict)
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    plans: Mapping[str, Any] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)

    def earlier(self, run: Run, step_id: str, step: Step, args: Mapping[str, Any]) -> Taken | str:
        """The result that it has."""
        del run, step
        self.asked[step_id] = dict(args)
        return Taken(f"before/{step_id}", self.results[step_id]) if step_id in self.results else "no earlier run"

    def change(self, step_id: str, step: Step, args: Mapping[str, Any]) -> ForeseenChange | None:
        """What `put` would do."""
        del step_id
        return ForeseenChange(path=str(args["text"]), kind="created", note="") if step.tool == "put" else None

    def below(self, run: Run, step: Step, args: Mapping[str, Any], now: datetime, rules: RuleSet) -> Below | None:
        """The plan that a step would run, of those that it has."""
        return below(run, step, args, now, rules, self._load)

    def _load(self, workspace: str, source: Source) -> LoadedPlan:
        if source.value not in self.plans:
            raise ToolError("NOT_FOUND", f"{workspace}/{source.value} does not exist")
        return LoadedPlan(source=str(source.value), sha256="0" * 64, data=self.plans[source.value])

    def at(self, workspace: str) -> Ground:
        """The same."""
        self.places.append(workspace)
        return self


def foreseen(ground: Ground, *steps: Step, **fields: Any) -> dict[str, ForeseenStep]:
    """What would become of each step, if earlier results were taken."""
    options = Options(approve_all=True, parts={"cache": CacheChoice(cache="on")})
    walk = Walk(run_of(*steps, facts=FACTS, options=options, **fields), ground, NOW)
    return {each.step_id: each for each in walk.steps()}


def look(name: str, *needs: str, uses: tuple[str, ...] = (), **fields: Any) -> Step:
    return step(name, *needs, uses=uses, **{"tool": "look", **fields})


def put(name: str, *needs: str, uses: tuple[str, ...] = (), **fields: Any) -> Step:
    return step(name, *needs, uses=uses, **{"tool": "put", **fields})


def outlooks(found: Mapping[str, ForeseenStep]) -> dict[str, str]:
    return {name: each.outlook for name, each in found.items()}


def test_an_earlier_value_is_filled_into_the_calls_that_use_it() -> None:
    ground = Ground({"a": "one", "b": "two"})
    found = foreseen(ground, look("a"), look("b", uses=("a",)), look("c", uses=("b",)))
    assert outlooks(found) == {"a": "cached", "b": "cached", "c": "run"}
    assert found["b"].taken_from == "before/b"
    assert (ground.asked["b"], ground.asked["c"]) == ({"text": ["one"]}, {"text": ["two"]})
    assert found["c"].why == "no earlier run"


def test_of_what_uses_a_value_that_is_not_known_nothing_more_is_known() -> None:
    found = foreseen(Ground({"c": 1}), look("a"), look("b", uses=("a",)), look("c", uses=("b",)), look("d", "c"))
    assert outlooks(found) == {"a": "run", "b": "depends", "c": "depends", "d": "run"}
    assert (found["b"].depends_on, found["c"].depends_on) == (["a"], ["b"])


@pytest.mark.parametrize(("condition", "outlook"), [("a == 'one'", "cached"), ("a == 'two'", "skip")])
def test_a_condition_over_an_earlier_value_is_decided(condition: str, outlook: str) -> None:
    found = foreseen(Ground({"a": "one", "b": 2}), look("a"), look("b", when=condition))
    assert outlooks(found) == {"a": "cached", "b": outlook}


def test_a_condition_over_a_value_to_come_is_not() -> None:
    found = foreseen(Ground(), look("a"), look("b", when="a == 'two'"), look("c", uses=("b",)))
    assert outlooks(found) == {"a": "run", "b": "depends", "c": "depends"}


def test_a_result_whose_files_a_step_before_may_change_is_promised_under_that_condition_only() -> None:
    found = foreseen(Ground({"b": 1, "c": 1}), put("a"), look("b", "a"), look("c"))
    assert outlooks(found) == {"a": "run", "b": "depends", "c": "cached"}
    assert found["b"].depends_on == ["a"]
    assert "before/b" in found["b"].why
    found = foreseen(Ground({"b": 1}), look("a"), look("b", "a"))
    assert outlooks(found) == {"a": "run", "b": "cached"}, "what only reads changes nothing"


def test_a_loop_over_known_items_is_unfolded_and_one_over_others_is_not() -> None:
    each: dict[str, Any] = {"forEach": {"items": "a"}, "args": {"text": "$item"}}
    found = foreseen(Ground({"a": ["x", "y"], "b[1]": 1}), look("a"), look("b", **each), look("c", uses=("b",)))
    assert outlooks(found) == {"a": "cached", "b": "run", "b[0]": "run", "b[1]": "cached", "c": "depends"}
    assert found["b"].items == 2
    assert found["b"].tool == ""
    found = foreseen(Ground(), look("a"), look("b", **each))
    assert outlooks(found) == {"a": "run", "b": "depends"}


def test_blocks_and_alternatives_are_gone_into() -> None:
    inside = {"id": "in", "tool": "look", "args": {"text": "$a"}}
    cases = [{"when": "a == 'one'", "steps": [inside]}, {"when": "`true`", "steps": [{**inside, "id": "other"}]}]
    block = Step.model_validate({"id": "block", "steps": [inside]})
    found = foreseen(Ground({"a": "one"}), look("a"), block, Step.model_validate({"id": "choice", "switch": cases}))
    assert outlooks(found) == {"a": "cached", "block": "run", "choice": "run", "block.in": "run", "choice.in": "run"}


def test_what_must_fail_is_said_with_all_that_it_blocks() -> None:
    found = foreseen(Ground({"a": {"x": 1}}), look("a"), look("b", args={"text": "$a.y"}), look("c", "b"))
    assert outlooks(found) == {"a": "cached", "b": "fail", "c": "blocked"}
    assert "y" in found["b"].why
    assert "'b'" in found["c"].why


def test_of_a_repetition_the_first_round_is_shown() -> None:
    found = foreseen(Ground(), look("a", repeat={"until": "value", "limit": 3}), look("b", uses=("a",)))
    assert outlooks(found) == {"a": "run", "a#1": "run", "b": "depends"}
    assert (found["a"].rounds, found["a"].tool, found["a#1"].tool) == (3, "", "look")
    assert "value" in found["a"].why


def test_a_round_that_is_known_to_be_the_last_gives_the_value() -> None:
    nap = step("nap", tool="sleep", args={"seconds": 1}, repeat={"until": "`true`", "limit": 3})
    found = foreseen(Ground({"b": 1}), nap, look("b", "nap"))
    assert outlooks(found) == {"nap": "run", "nap#1": "run", "b": "cached"}


def test_what_closes_the_plan_is_shown_as_well() -> None:
    end = [{"id": "tidy", "tool": "look", "args": {"text": "x"}}]
    found = foreseen(Ground(), look("a"), **{"finally": end})
    assert outlooks(found) == {"a": "run", "finally": "run", "finally.tidy": "run"}
    undo: dict[str, Any] = {"undo": {"tool": "look", "args": {"text": "back"}}}
    found = foreseen(Ground(), put("a", **undo), look("b", "a", args={"text": "$nobody.y"}), rollback=True)
    assert outlooks(found) == {"a": "run", "b": "fail", "a.undo": "run"}


def test_a_tool_that_this_machine_does_not_have_is_named_and_hides_nothing_else() -> None:
    found = foreseen(Ground({"b": 1}), step("a", tool="elsewhere"), look("b"), look("c", uses=("a",)))
    assert outlooks(found) == {"a": "run", "b": "cached", "c": "depends"}
    assert "does not have" in found["a"].why


def test_timers_take_their_time_and_every_change_of_a_file_is_told() -> None:
    found = foreseen(Ground(), step("nap", tool="sleep", args={"seconds": 3}), put("a", args={"text": "x.txt"}))
    assert found["nap"].seconds == 3
    assert found["a"].change == ForeseenChange(path="x.txt", kind="created", note="")


@pytest.mark.slow
def test_a_plan_of_any_size_is_looked_at_in_bounded_time() -> None:
    each = look("b", forEach={"items": list(range(MAX_STEPS + 500))}, args={"text": "$item"})
    walk = Walk(run_of(each, facts=FACTS, options=Options(parts={"cache": CacheChoice(cache="on")})), Ground(), NOW)
    assert len(walk.steps()) <= MAX_STEPS + 1
