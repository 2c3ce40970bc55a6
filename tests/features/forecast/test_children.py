"""What the child plans of a plan would do."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.child_state import MAX_NESTING
from plansurvive.plans.model import Step
from tests.features.forecast.test_walk import Ground, foreseen, look, outlooks, put
from tests.plans.building import step

UPLOAD: dict[str, Any] = {
    "inputs": {"to": {"type": "string"}},
    "steps": [
        {"id": "read", "tool": "look", "args": {"text": "$inputs.to"}},
        {"id": "send", "tool": "look", "args": {"text": "$read"}},
    ],
    "outputs": {"sent": "send"},
}


def child(name: str, *needs: str, **args: Any) -> Step:
    """A step that runs a plan."""
    return step(name, *needs, tool="plan", args=args)


def deploy() -> Step:
    """A step that runs `up.yaml`."""
    return child("deploy", file="up.yaml", inputs={"to": "x"})


def test_a_child_plan_is_gone_into_with_its_inputs_and_gives_its_value() -> None:
    ground = Ground({"read": "r", "send": "s", "b": 1}, plans={"up.yaml": UPLOAD})
    found = foreseen(ground, deploy(), look("b", args={"text": "$deploy.sent"}))
    assert outlooks(found) == {"deploy": "run", "deploy/read": "cached", "deploy/send": "cached", "b": "cached"}
    assert (ground.asked["read"], ground.asked["send"], ground.asked["b"]) == (
        {"text": "x"}, {"text": "r"}, {"text": "s"},
    )  # fmt: skip


def test_its_value_is_not_known_if_a_step_that_it_is_made_of_would_run() -> None:
    ground = Ground({"read": "r"}, plans={"up.yaml": UPLOAD})
    found = foreseen(ground, deploy(), look("b", args={"text": "$deploy.sent"}))
    assert outlooks(found) == {"deploy": "run", "deploy/read": "cached", "deploy/send": "run", "b": "depends"}
    assert found["b"].depends_on == ["deploy"]


def test_plans_are_gone_into_at_any_depth_and_files_carry_over() -> None:
    inner = {"steps": [{"id": "in", "tool": "look", "args": {"text": "x"}}]}
    outer = {"steps": [{"id": "mid", "tool": "plan", "args": inner}]}
    found = foreseen(Ground({"in": 1}), put("a"), child("top", "a", **outer))
    assert outlooks(found) == {"a": "run", "top": "run", "top/mid": "run", "top/mid/in": "depends"}
    assert found["top/mid/in"].depends_on == ["a"]
    writes = {"steps": [{"id": "in", "tool": "put", "args": {"text": "f.txt"}}]}
    found = foreseen(Ground({"b": 1}), child("top", **writes), look("b", "top"), look("c"))
    assert outlooks(found) == {"top": "run", "top/in": "run", "b": "depends", "c": "run"}
    assert found["b"].depends_on == ["top/in"]


def test_a_child_plan_that_would_fail_fails_its_step() -> None:
    bad = {"steps": [{"id": "in", "tool": "look", "args": {"text": "$nobody.x"}}]}
    found = foreseen(Ground(), child("top", **bad), look("b", "top"))
    assert outlooks(found) == {"top": "run", "top/in": "fail", "b": "blocked"}
    assert "fails" in found["top"].why


@pytest.mark.parametrize(
    ("args", "says"),
    [({"file": "none.yaml"}, "NOT_FOUND"), ({"file": "up.yaml"}, "to"), ({"file": "self.yaml"}, "")],
)
def test_a_child_plan_that_cannot_start_is_said(args: dict[str, Any], says: str) -> None:
    itself = {"steps": [{"id": "again", "tool": "plan", "args": {"file": "self.yaml"}}]}
    found = foreseen(Ground(plans={"up.yaml": UPLOAD, "self.yaml": itself}), child("deploy", **args))
    if says:
        assert (outlooks(found), says in found["deploy"].why) == ({"deploy": "fail"}, True)
    else:
        assert len(found) == MAX_NESTING + 1
        assert list(found.values())[-1].outlook == "fail"
        assert "NESTED_TOO_DEEP" in list(found.values())[-1].why


def test_a_plan_file_that_a_step_before_may_write_depends_on_it() -> None:
    found = foreseen(Ground(), put("a"), child("deploy", "a", file="new.yaml"))
    assert outlooks(found) == {"a": "run", "deploy": "depends"}
    assert found["deploy"].depends_on == ["a"]


def test_a_child_plan_works_in_its_own_directory() -> None:
    ground = Ground(plans={"up.yaml": {"workspace": "site", **UPLOAD}})
    foreseen(ground, deploy())
    assert ground.places == ["/w/site"]
    away = Ground(plans={"up.yaml": {"workspace": "../other", **UPLOAD}})
    found = foreseen(away, deploy())
    assert "WORKSPACE_REFUSED" in found["deploy"].why


def test_items_that_run_as_plans_are_unfolded() -> None:
    rule = {"items": ["x", "y", "z"], "mode": "plans", "batch": 2}
    found = foreseen(Ground(), look("each", forEach=rule, args={"text": "$item"}), look("b", uses=("each",)))
    assert found["each"].items == 3
    assert {name.rpartition("/")[2]: one.outlook for name, one in found.items() if one.tool == "look"} == {
        "each[0]": "run", "each[1]": "run", "each[2]": "run", "b": "depends",
    }  # fmt: skip
