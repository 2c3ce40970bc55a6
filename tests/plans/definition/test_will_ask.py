"""The forecast of `plan check`: which steps will wait for a person, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from plansurvive.activities.provenance.shell_writes import written_by_shell
from plansurvive.activities.tools.registry import load_tools
from plansurvive.plans.definition.checks.will_ask import Asking, Ground, waived, will_ask
from plansurvive.plans.definition.durable_tools import Asks, DurableTool
from plansurvive.plans.definition.language import Language
from plansurvive.plans.model import Plan

TOOLS = {name: tool.spec for name, tool in load_tools(()).items()}
LANGUAGE = Language(
    tools=[
        DurableTool("agent", Asks("AGENT", "it chooses its calls")),
        DurableTool("ask", Asks("QUESTION", "it asks", is_question=True)),
    ]
)


def write(step_id: str, path: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": step_id, "tool": "write_file", "args": {"path": path, "content": "x"}, "dependsOn": needs, **more}


def read(step_id: str, path: str) -> dict[str, Any]:
    return {"id": step_id, "tool": "read_file", "args": {"path": path}}


def shell(step_id: str, command: str, *needs: str, **more: Any) -> dict[str, Any]:
    args = {"command": command}
    return {"id": step_id, "tool": "run_command", "args": args, "dependsOn": needs, "requiresApproval": False, **more}


def asking(
    steps: Sequence[dict[str, Any]], there: Sequence[str] = (), strict: bool = False, **plan: Any
) -> list[Asking]:
    """The forecast of a plan in a workspace in which these files exist."""
    yes, begun = plan.pop("approve_all", False), plan.pop("is_begun", False)
    found = Plan.model_validate(
        {"steps": [{**step, "dependsOn": list(step.get("dependsOn", ()))} for step in steps], **plan}
    )
    ground = Ground(
        TOOLS, lambda path: path in there, lambda text: list(written_by_shell(text)), strict=strict, language=LANGUAGE,
        is_begun=begun,
    )  # fmt: skip
    return will_ask(found, ground, approve_all=yes)


def codes(found: Sequence[Asking]) -> dict[str, tuple[str, bool]]:
    return {each.step_id: (each.code, each.first_run) for each in found}


def test_a_step_asks_if_the_plan_or_its_tool_says_so() -> None:
    delete = {"id": "d", "tool": "delete_file", "args": {"path": "x"}}
    found = asking(
        [delete, {**read("r", "x"), "requiresApproval": True}, {**delete, "id": "w", "requiresApproval": False}]
    )
    assert codes(found) == {"d": ("TOOL", True), "r": ("REQUIRED", True)}
    assert "delete_file needs approval by default" in found[0].reason
    assert "`requiresApproval: false` waives it" in found[0].reason
    [sent] = asking([delete], is_begun=True)
    assert "`requiresApproval: false` in an edit does not waive it" in sent.reason


def test_the_undo_of_a_plan_that_rolls_back_is_listed_unless_it_is_waived() -> None:
    undo: dict[str, Any] = {"tool": "delete_file", "args": {"path": "out/a"}}
    built = write("build", "out/a", requiresApproval=False, undo=undo)
    assert codes(asking([built], rollback=True)) == {"build.undo": ("TOOL", True)}
    assert asking([built]) == [], "`plan undo` is called by a person"
    assert asking([{**built, "undo": {**undo, "requiresApproval": False}}], rollback=True) == []
    restored = {"tool": "write_file", "args": {"path": "out/a", "content": "before"}}
    assert asking([{**built, "undo": restored}], ["out/a"], rollback=True) == [], "it knows what its step wrote"
    inside = asking([{"id": "all", "steps": [built]}], rollback=True)
    assert codes(inside) == {"all.build.undo": ("TOOL", True)}


def test_an_undo_is_approved_with_its_step_if_that_asks_and_tells_all_of_it() -> None:
    undo: dict[str, Any] = {"tool": "delete_file", "args": {"path": "out/a"}}
    built = write("build", "out/a", requiresApproval=True, undo=undo)
    [asks] = asking([built], rollback=True)
    assert asks.step_id == "build"
    assert asks.reason.endswith("; its undo is approved with it")
    for other in ({"args": {"path": "{{value}}"}}, {"requiresApproval": True}):
        assert set(codes(asking([{**built, "undo": undo | other}], rollback=True))) == {"build", "build.undo"}


def test_writing_over_an_unknown_file_asks_now_if_it_is_there_and_later_if_it_is_not() -> None:
    assert codes(asking([write("w", "report.md")], there=["report.md"])) == {"w": ("OVERWRITES", True)}
    [later] = asking([write("w", "./report.md")])
    assert (later.code, later.first_run) == ("OVERWRITES", False)
    assert "writes over report.md, which the plan neither made nor read; list it in `owns:`" in later.reason


@pytest.mark.parametrize(
    "earlier",
    [read("e", "out/a"), write("e", "out/a", requiresApproval=False), shell("e", "echo a > out/a")],
    ids=["read", "written", "written by a command"],
)
def test_a_file_that_an_earlier_step_knows_does_not_ask(earlier: dict[str, Any]) -> None:
    assert asking([earlier, shell("between", "true", "e"), write("w", "out/a", "between")], there=["out/a"]) == []
    assert codes(asking([earlier, write("w", "out/a")], there=["out/a"])) == {"w": ("OVERWRITES", True)}


def test_what_the_plan_owns_does_not_ask_but_a_protected_name_does() -> None:
    steps = [write("w", "out/a"), write("m", "out/Makefile")]
    found = asking(steps, there=["out/a"], owns=["out/**"])
    assert codes(found) == {"m": ("PROTECTED", True)}
    assert "Makefile" in found[0].reason


def test_a_path_of_a_value_may_lead_anywhere() -> None:
    steps = [read("r", "names"), write("w", "$r")]
    assert codes(asking(steps)) == {"w": ("OVERWRITES", False)}
    assert asking(steps, owns=["out/**"]) == []


def test_yes_waives_everything_but_questions_and_strict_waives_nothing() -> None:
    ask = {"id": "q", "tool": "ask", "args": {"question": "which?"}}
    steps = [write("w", "a"), shell("c", "true"), {"id": "g", "tool": "agent", "args": {"objective": "x"}}, ask]
    assert codes(asking(steps, approve_all=True)) == {"q": ("QUESTION", True)}
    strict = codes(asking(steps, strict=True, approve_all=True, owns=["a"]))
    assert strict == {
        "w": ("PROTECTED", True), "c": ("TOOL", True), "g": ("AGENT", True), "q": ("QUESTION", True)
    }  # fmt: skip


def test_steps_in_blocks_are_named_with_their_block_and_know_what_came_before_it() -> None:
    block = {"id": "b", "steps": [write("w", "seen"), write("v", "unseen")], "dependsOn": ["r"]}
    switch = {"id": "s", "switch": [{"when": "`true`", "steps": [write("x", "seen")]}]}
    found = asking([read("r", "seen"), block, switch], there=["seen", "unseen"])
    assert codes(found) == {"b.v": ("OVERWRITES", True), "s.x": ("OVERWRITES", True)}


def test_a_step_on_another_machine_meets_files_that_are_not_known_here() -> None:
    assert codes(asking([write("w", "a", queue="gpu")], there=["a"])) == {"w": ("OVERWRITES", False)}


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_big_plan_whose_steps_all_write_one_file_is_forecast_in_bounded_work() -> None:
    chain = [shell(f"s{n}", "true", *([f"s{n - 1}"] if n else [])) for n in range(2_000)]
    writers = [write(f"w{n}", "one", "s1999") for n in range(1_000)]
    assert len(asking([*chain, *writers])) == 1_000


def test_waived_approvals_are_named() -> None:
    approving = {"approval": {"timeout": 1, "onTimeout": "approve"}}
    inside = [{"id": "in", "tool": "x", "requiresApproval": False}, {"id": "asks", "tool": "x"}]
    steps: list[dict[str, Any]] = [{"id": "block", "steps": inside}, {"id": "risky", "tool": "x", **approving}]
    assert waived(Plan.model_validate({"steps": steps})) == ["in", "risky"]
    steps = [{"id": "a", "tool": "x"}, {"id": "b", "tool": "x", "approval": {"timeout": 1}}]
    assert waived(Plan.model_validate({"steps": steps, "defaults": approving})) == ["a"]
