"""What a resume or a rerun would do with loops, as `--dry-run` says, against what the new run does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.resume import (
    Condition,
    Foreseen,
    conditions,
    foreseen,
    rerun_from,
    rerun_only,
    resumed,
)
from plansurvive.plans.run import Run, run_of, text_of
from tests.plans.building import NOW
from tests.plans.flow.player import Player, broken, plan

ITEMS = list("abcdef")
RULES: dict[str, dict[str, Any]] = {
    "strict": {"maxParallel": 6},
    "tolerated": {"maxParallel": 6, "tolerate": "100%"},
    "tolerated, partly started": {"maxParallel": 2, "tolerate": 1},
    "partly started": {"maxParallel": 2},
}
BODIES: dict[str, dict[str, Any]] = {
    "call": {"tool": "note", "args": {"text": "{{item}}"}},
    "block": {
        "steps": [
            {"id": "one", "tool": "note", "args": {"text": "{{item}}"}},
            {"id": "two", "tool": "note", "args": {"text": "{{item}}"}, "dependsOn": ["one"]},
        ],
    },
}
HOW: dict[str, Callable[[Run], Run]] = {
    "resume": lambda run: resumed(run, "p-r2", NOW),
    "the list": lambda run: rerun_from(run, "list", "p-r2", NOW),
    "the loop": lambda run: rerun_from(run, "each", "p-r2", NOW),
    "the item that failed": lambda run: rerun_from(run, "each[b]", "p-r2", NOW),
    "an item that completed": lambda run: rerun_from(run, "each[a]", "p-r2", NOW),
    "two items": lambda run: rerun_from(run, ["each[a]", "each[b]"], "p-r2", NOW),
    "all items": lambda run: rerun_from(run, ["each[*]"], "p-r2", NOW),
    "what checks": lambda run: rerun_from(run, "check", "p-r2", NOW),
    "the list alone": lambda run: rerun_only(run, "list", "p-r2", NOW),
}


def ended(rule: str, body: str) -> Run:
    """A run of which the items `b` and `c` failed, and so did the step that checks them, if it ran."""
    loop = {"id": "each", "forEach": {"items": "$list", "key": "@", **RULES[rule]}, **BODIES[body]}
    check = {"id": "check", "tool": "note", "args": {"text": "$each"}}
    end = {"id": "end", "tool": "note", "args": {"text": "$check"}}
    fails = [f"each[{item}]{'.one' * (body == 'block')}" for item in "bc"]
    rows = ({"id": "list", "tool": "note", "args": {"text": ITEMS}}, loop, check, end)
    return run_of(text_of(Player(plan(*rows), broken(*fails, "check")).play().run))


def is_of(name: str, step_id: str) -> bool:
    return step_id == name or step_id.startswith((f"{name}.", f"{name}["))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("rule", RULES)
def test_a_dry_run_says_what_the_new_run_does(rule: str, body: str, how: str) -> None:
    run = ended(rule, body)
    new = HOW[how](run)
    found, known = foreseen(run, new), set(run.steps)
    again = Player(new).play()
    fresh = [name for name in again.run.steps if name.startswith("each[") and "." not in name and name not in known]
    named = [name for name in again.called if not any(is_of(each, name) for each in fresh)]
    assert all(any(is_of(each, name) for name in named) for each in found.runs), found
    assert all(any(is_of(each, name) for each in found.runs) for name in named), (found, named)
    assert not any(is_of(each, name) for each in found.keeps for name in named), (found, named)
    in_loops = [each for each in fresh if not any(is_of(name, each) for name in found.runs)]
    assert sum(found.items.values()) == len(in_loops), (found, fresh)


def test_a_failure_that_was_tolerated_is_kept_by_a_resume_and_runs_again_in_a_rerun() -> None:
    run = ended("tolerated", "call")
    assert foreseen(run, HOW["resume"](run)) == Foreseen(["check", "end"], ["list", "each"], [], {})
    found = foreseen(run, HOW["the item that failed"](run))
    assert found.runs == ["each[b]", "each[c]", "check", "end"]
    assert found.keeps == ["list", *(f"each[{item}]" for item in "adef")]


def test_items_that_have_not_started_are_counted() -> None:
    run = ended("partly started", "call")
    found = foreseen(run, HOW["resume"](run))
    assert found == (["each[b]", "each[c]", "check", "end"], ["list", "each[a]"], [], {"each": 3})


def test_several_steps_are_rerun_in_one_run() -> None:
    run = ended("tolerated", "block")
    new = rerun_from(run, ["each[a].two", "each[*].one"], "p-r2", NOW)
    assert new.log[-1].text.startswith("reruns plan 'p' from 'each[a].two' and 'each[*].one': 3 steps to run (each, ")
    for asked in ("each[*].none", "nothing[*]", "each[z]"):
        with pytest.raises(Refused) as caught:
            rerun_from(run, ["list", asked], "p-r2", NOW)
        assert caught.value.code == "UNKNOWN_STEP"


@pytest.mark.parametrize("new_text", ["yes", "no"])
@pytest.mark.parametrize("start_at", ["flag", "maybe", "each[*]", "bad"])
def test_of_a_condition_it_is_told_what_is_known(start_at: str, new_text: str) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "flag", "tool": "note", "args": {"text": "yes"}},
        {"id": "maybe", "tool": "note", "when": "flag == 'no'", "args": {"text": "maybe"}},
        {"id": "sure", "tool": "note", "when": "flag == 'yes'", "dependsOn": ["maybe"], "args": {"text": "sure"}},
        {"id": "each", "forEach": {"items": "$list", "key": "@"}, "when": "item != 'b'", **BODIES["call"]},
        {"id": "bad", "tool": "note", "when": "length(flag[0]) > `1`", "args": {"text": "bad"}},
        {"id": "end", "tool": "note", "when": "each[0] == 'a'", "args": {"text": "end"}},
    ]  # fmt: skip
    rows.insert(0, {"id": "list", "tool": "note", "args": {"text": ["a", "b"]}})
    run = run_of(text_of(Player(plan(*rows)).play().run))
    new = rerun_from(run, start_at, "p-r2", NOW)
    runs = foreseen(run, new).runs
    found = conditions(run, new, runs)
    again = Player(new, lambda name, args: new_text if name == "flag" else args["text"]).play()
    assert all(each.holds == (name in again.called) for name, each in found.items() if not each.decided_by), found
    assert all(each.decided_by and set(each.decided_by) <= set(runs) for each in found.values() if not each.holds) or (
        found["maybe"] == Condition("flag == 'no'", [], False)
    )
    not_run = set(runs) - {name for name in runs for called in again.called if is_of(name, called)}
    assert not_run <= {name for name, each in found.items() if each.decided_by or not each.holds} | {"bad"}, found
    assert ("bad" in found) == (start_at == "flag"), "what cannot be evaluated fails, and is not skipped"
