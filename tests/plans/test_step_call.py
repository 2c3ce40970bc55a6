"""The digest of a call: the same for the same call, another one for whatever would happen otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run, run_of, text_of
from plansurvive.plans.run.step_call import StepCall, digest_of, upcoming
from tests.plans.building import NOW, TOOLS, begun, completed, step

CALL = StepCall("run_command", {"command": "echo a", "env": {"A": "1"}}, "lab", "/w", {"big": {"sha256": "00"}})


def test_the_digest_is_a_sha256_that_never_changes() -> None:
    """Decisions are stored with it: what was approved before an update must be the same call afterwards."""
    assert digest_of(CALL) == "764ac2e80c5c09944d24971597a108bcfe5898c765f68c35138b6bed4bb747d1"
    assert digest_of(CALL._replace(args={"env": {"A": "1"}, "command": "echo a"})) == digest_of(CALL), "order of keys"


@pytest.mark.parametrize(
    "other",
    [
        CALL._replace(tool="run_python"),
        CALL._replace(args={**CALL.args, "command": "echo b"}),
        CALL._replace(args={**CALL.args, "command": "echo a "}),
        CALL._replace(args={**CALL.args, "command": "echo \u0430"}),
        CALL._replace(args={**CALL.args, "network": True}),
        CALL._replace(args={**CALL.args, "network": None}),
        CALL._replace(args={**CALL.args, "env": {"A": 1}}),
        CALL._replace(args={**CALL.args, "env": {}}),
        CALL._replace(queue=None),
        CALL._replace(queue=""),
        CALL._replace(workspace="/w2"),
        CALL._replace(values={"big": {"sha256": "01"}}),
        CALL._replace(values={"big": {"value": "00"}}),
        CALL._replace(values={}),
    ],
)
def test_whatever_differs_gives_another_digest(other: StepCall) -> None:
    assert digest_of(other) != digest_of(CALL)
    assert digest_of(other, {"recovery": {}}) not in (digest_of(other), digest_of(CALL, {"recovery": {}}))


def test_what_is_moved_from_one_part_to_another_is_another_call() -> None:
    one = CALL._replace(args={"a": "x", "b": ""}, queue="q", workspace="w")
    for other in (one._replace(args={"a": "", "b": "x"}), one._replace(queue="w", workspace="q")):
        assert digest_of(other) != digest_of(one)


def finished(value: Any, *steps: Step, large: bool = False) -> Run:
    """A run in which `r` completed with the value, stored outside history if it is large."""
    schedule = begun(step("r"), *steps)
    schedule.start("r", NOW)
    schedule.settle("r", completed(value), NOW)
    result = schedule.run.steps["r"].result
    if large and result:
        found = LargeValue(sha256=str(value), bytes=9_000, preview="the same")
        schedule.run.steps["r"].result = result.model_copy(update={"value": None, "large": found})
    return schedule.run


USES = step("g", tool="run_command", args={"command": "echo {{r}}"})


@pytest.mark.parametrize("large", [False, True])
def test_the_values_count_wherever_they_are_stored(large: bool) -> None:
    calls = {value: upcoming(finished(value, USES, large=large), USES) for value in ("one", "two")}
    assert [each.is_whole for each in calls.values()] == [True, True]
    assert digest_of(calls["one"].call) != digest_of(calls["two"].call)
    again = upcoming(finished("one", USES, large=large), USES)
    assert digest_of(again.call) == digest_of(calls["one"].call)


def test_a_call_whose_values_are_unknown_is_not_whole() -> None:
    run = begun(step("r"), USES).run
    assert upcoming(run, USES) == (StepCall("run_command", {"command": "echo {{r}}"}, None, "/w", {}), False, False)
    plain = step("p", tool="note", args={"text": "$$r costs $5"})
    assert upcoming(begun(plain).run, plain).call.args == {"text": "$r costs $5"}


def test_a_call_is_not_whole_because_one_of_its_values_is_stored() -> None:
    both = step("g", tool="run_command", args={"command": "echo {{r}} {{late}}"})
    run = finished("00", both, step("late"), large=True)
    assert not upcoming(run, both).is_whole


def test_a_call_that_would_be_too_long_is_not_built() -> None:
    many = step("g", tool="note", args={"text": ["$r"] * 1_000})
    found = upcoming(finished("x" * 60_000, many), many)
    assert (found.is_whole, found.call.args) == (False, many.args)


def test_the_digest_survives_storing_the_run() -> None:
    odd = {"text": ["é\u200b\ud7ff", 1.0, 1, -0.0, 1e300, 2**70, True, None, {"b": 1, "a": [[]]}]}
    one = step("o", args=odd)
    run = begun(one).run
    stored = run_of(text_of(run))
    assert digest_of(upcoming(stored, stored.plan.steps[0]).call) == digest_of(upcoming(run, one).call)
    assert json.loads(text_of(run))["plan"]["steps"][0]["args"] == odd


def test_a_steps_queue_decides_queue_and_workspace() -> None:
    one = step("o", queue="lab")
    facts = Facts(tools=TOOLS, workspace="/w", workspaces={"lab": "/lab"})
    call = upcoming(begun(one, facts=facts).run, one).call
    assert (call.queue, call.workspace) == ("lab", "/lab")
    assert call.kind == "note on queue lab in /lab"
    assert StepCall("run_command", {"network": True}, None, "/w", {}).kind == "run_command with network in /w"
