"""Loops, blocks and alternatives in a model's plan: asked for, read, and without waivers at any depth."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.features.agents.model.reading import parse_complex
from plansurvive.features.planning.control_flow import AGENT_EXAMPLE, EXAMPLE
from plansurvive.features.planning.prompts import planning_system
from plansurvive.features.planning.recovery import choice_problems, edits_of
from plansurvive.features.planning.regeneration import fitted
from plansurvive.plans.definition.checks.validation import problems
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.editing.edits import AddStep
from plansurvive.plans.llm.answers import (
    MAX_STEPS,
    PlanAnswer,
    Recovery,
    parse_plan_answer,
    parse_recovery,
)
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.model import Plan, Step
from tests.plans.building import TOOLS, plan_of, run_of, spec, step

Data = dict[str, Any]
WAIVED = {"requiresApproval": False, "queue": "gpu", "approval": {"timeout": 1, "onTimeout": "approve"}}
NOW = datetime(2026, 1, 20, tzinfo=UTC)


def call(name: str, **fields: Any) -> Data:
    """The data of a step that deletes a file."""
    return {"id": name, "tool": "delete_file", "args": {"path": "x"}, **fields}


def answered(*steps: Data, **fields: Any) -> PlanAnswer:
    """A plan as a model wrote it."""
    found = parse_plan_answer(json.dumps({"steps": list(steps), **fields}), TOOLS)
    assert isinstance(found, PlanAnswer), found
    return found


NESTED: dict[str, Data] = {
    "a block": {"id": "b", "steps": [call("x", **WAIVED)]},
    "a block in a block": {"id": "b", "steps": [{"id": "c", "steps": [call("x", **WAIVED)]}]},
    "a block that waives": {"id": "b", "steps": [call("x")], **WAIVED},
    "a switch": {"id": "s", "switch": [{"when": "a", "steps": [call("x", **WAIVED)]}]},
    "a catch": call("p", catch=[{"steps": [call("x", **WAIVED)]}]),
    "a finally": {"id": "b", "steps": [call("x")], "finally": [call("y", **WAIVED)]},
    "an undo": call("p", undo={"steps": [call("x", **WAIVED)]}),
    "a loop": call("p", forEach="$a", **WAIVED),
    "names in snake case": {
        "id": "b",
        "steps": [call("x", requires_approval=False)],
        "finally_": [call("y", **WAIVED)],
    },
    "a block as text": {"id": "b", "steps": json.dumps([call("x", **WAIVED)])},
    "text in text": {"id": "b", "steps": json.dumps([{"id": "c", "steps": json.dumps([call("x", **WAIVED)])}])},
    "a switch as text": {"id": "s", "switch": json.dumps([{"steps": [call("x", **WAIVED)]}])},
    "a catch as text": call("p", catch=json.dumps([{"steps": json.dumps([call("x", **WAIVED)])}])),
    "an undo as text": call("p", undo=json.dumps({"steps": [call("x", **WAIVED)]})),
}


@pytest.mark.parametrize("name", NESTED)
def test_no_step_of_a_models_plan_waives_an_approval_or_chooses_a_queue(name: str) -> None:
    found = answered(NESTED[name])
    given = dict(walk(found.plan))
    assert len(given) >= 1
    assert [
        path for path, each in given.items() if each.requires_approval is False or each.queue or each.approval
    ] == []
    assert any("waive" in note for note in found.notes)
    assert any("queue was removed" in note for note in found.notes) or name == "names in snake case"


@pytest.mark.parametrize("name", NESTED)
def test_a_recovery_waives_nothing_at_any_depth_either(name: str) -> None:
    found = parse_recovery(json.dumps({"action": "insert", "steps": [NESTED[name]], "reason": "r"}), None, TOOLS)
    assert isinstance(found, Recovery)
    steps = dict(walk(Plan(steps=found.steps))).values()
    assert not any(each.requires_approval is False or each.queue or each.approval for each in steps)


def test_a_plan_in_the_arguments_of_a_step_waives_nothing() -> None:
    inner = {"id": "c", "steps": [call("x", **WAIVED)]}
    for args in ({"steps": [inner]}, {"steps": json.dumps([inner])}, {"plan": {"steps": [inner], "owns": ["*"]}}):
        [child] = answered({"id": "p", "tool": "plan", "args": args}).plan.steps
        assert '"requiresApproval"' not in json.dumps(child.args)
        assert '"queue"' not in json.dumps(child.args)
        assert '"owns"' not in json.dumps(child.args)
    plan_tool = spec("plan", {"steps": {"type": "array", "items": {"type": "object"}}})
    text = json.dumps({"tool_calls": [{"tool": "plan", "args": {"steps": [inner]}}]})
    found = parse_complex(text, {"plan": plan_tool})
    assert not isinstance(found, AnswerProblem)
    assert '"queue"' not in json.dumps(found.tool_calls[0].args)


def test_what_a_plan_owns_and_how_it_ends_is_for_people_to_say() -> None:
    found = answered(call("x"), owns=["*"], rollback=True, **{"finally": [call("y", **WAIVED)]})
    assert (found.plan.owns, found.plan.rollback, found.plan.finally_) == ([], False, None)
    assert [note for note in found.notes if "owns" in note]


def test_constructs_written_as_text_become_data() -> None:
    inner = [{"id": "x", "tool": "note", "args": {"text": "{{item}}"}, "when": None}]
    fields = {"forEach": '{"items": "$a.b", "key": "n"}', "repeat": '{"until": "x"}', "catch": None, "when": "a"}
    [found] = answered({"id": "b", "steps": json.dumps(inner), "switch": None, "output": None, **fields}).plan.steps
    assert found.for_each is not None
    assert (found.for_each.items, found.for_each.key) == ("$a.b", "n")
    assert found.repeat is not None
    assert found.steps is not None
    assert (found.repeat.until, found.steps[0].id, found.when) == ("x", "x", "a")
    [loop] = answered(call("x", forEach="$a.b")).plan.steps
    assert loop.for_each is not None
    assert loop.for_each.items == "$a.b"


def test_a_text_that_is_not_json_is_a_problem_with_its_place() -> None:
    found = parse_plan_answer(json.dumps({"steps": [{"id": "b", "steps": "[{]"}]}), TOOLS)
    assert isinstance(found, AnswerProblem)
    assert "step 'b' steps" in found.problems[0]


def test_steps_inside_blocks_count_towards_the_limits_of_an_answer() -> None:
    many = [call(f"x{number}") for number in range(MAX_STEPS)]
    found = parse_plan_answer(json.dumps({"steps": [{"id": "b", "steps": many}]}), TOOLS, MAX_STEPS)
    assert isinstance(found, AnswerProblem)
    assert "201 steps, those in blocks included" in found.problems[0]
    insert = {"action": "insert", "steps": [{"id": "b", "steps": many[:25]}], "reason": "r"}
    assert isinstance(parse_recovery(json.dumps(insert), None, TOOLS), AnswerProblem)


def test_steps_nested_without_end_are_a_problem_and_no_recursion_error() -> None:
    found = parse_plan_answer('{"steps": ' + '[{"id": "b", "steps": ' * 2_000 + "[]" + "}]" * 2_000 + "}", TOOLS)
    assert isinstance(found, AnswerProblem)
    text: Any = json.dumps([call("x")])
    for _ in range(12):
        text = json.dumps([{"id": "b", "steps": text}])
    assert parse_plan_answer(json.dumps({"steps": [{"id": "b", "steps": text}]}), TOOLS)


def test_the_prompt_explains_control_flow_with_examples_that_are_valid() -> None:
    tools = [*TOOLS.values(), spec("agent", {"objective": {"type": "string"}})]
    system = planning_system(tools)
    for part in (
        "=== CONTROL FLOW ===",
        '"forEach"',
        '"repeat"',
        '"switch"',
        '"catch"',
        '"steps"',
        EXAMPLE,
        AGENT_EXAMPLE,
    ):
        assert part in system
    listed = {"id": "list", "tool": "note", "args": {"text": "x"}}
    steps = [listed, json.loads(EXAMPLE), json.loads(AGENT_EXAMPLE)]
    plan = parse_plan_answer(json.dumps({"steps": steps}), {tool.name: tool for tool in tools})
    assert isinstance(plan, PlanAnswer)
    assert problems(plan.plan, {tool.name: tool for tool in tools}) == []


@pytest.mark.parametrize("tool", ["agent", "ask", "wait_for", "plan"])
def test_a_tool_is_explained_only_where_it_exists(tool: str) -> None:
    assert f'The tool "{tool}"' in planning_system([spec(tool)])
    assert f'The tool "{tool}"' not in planning_system([spec("other")])


def block(name: str, *inner: Step, **fields: Any) -> Step:
    """A block of steps."""
    return Step.model_validate({"id": name, "steps": list(inner), **fields})


def test_a_revision_retains_what_people_set_inside_a_block() -> None:
    old = block("b", step("x", requires_approval=True, queue="gpu", timeout=5), step("y"))
    new = block("b", step("x", description="new"), step("z"))
    [merged], wrong = fitted(run_of(old), [new])
    assert wrong == []
    assert merged.steps is not None
    x, z = merged.steps
    assert (x.requires_approval, x.queue, x.timeout, x.description) == (True, "gpu", 5, "new")
    assert (z.requires_approval, z.queue) == (None, None)


def test_a_revision_can_remove_a_loop_and_change_the_kind_of_a_step() -> None:
    old = [step("x", for_each="inputs.a", when="inputs.b", undo={"tool": "note"}), block("b", step("y"))]
    new = [step("x"), Step.model_validate({"id": "b", "switch": [{"steps": [step("y")]}]})]
    found, _ = fitted(run_of(*old), new)
    assert (found[0].for_each, found[0].when, found[0].undo) == (None, "inputs.b", old[0].undo)
    assert (found[1].steps, found[1].switch) == (None, new[1].switch)


def test_a_recovery_may_insert_a_block_bound_to_the_queue_of_the_failed_step() -> None:
    choice = Recovery(action="insert", steps=[block("b", step("x"), step("y"), forEach=["a"])], reason="r")
    failed = step("f", queue="gpu")
    [added, _] = edits_of(plan_of(failed), failed, choice, queue="gpu")
    assert isinstance(added, AddStep)
    assert [each["queue"] for each in added.step["steps"]] == ["gpu", "gpu"]
    assert "queue" not in added.step
    assert "args" not in added.step


def test_a_tool_that_the_queue_lacks_is_found_inside_an_inserted_block() -> None:
    failed = step("f", queue="gpu")
    run = run_of(failed)
    run.facts = run.facts.model_copy(update={"queue_tools": {"gpu": ["note"]}})
    choice = Recovery(action="insert", steps=[block("b", step("x", tool="sleep", args={"seconds": 1}))])
    [text] = choice_problems(run, failed, choice, NOW)
    assert text == "step 'b.x': the workers of queue 'gpu' have no tool 'sleep'"
