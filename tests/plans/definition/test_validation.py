"""What a plan means: every problem at once, with its code, its step, its field and the way to mend it."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.definition.checks.validation import errors, input_values, problems
from plansurvive.plans.model import Plan, Problem, Step
from tests.nightly import only_nightly
from tests.plans.building import TOOLS, plan_of, step


def found(*steps: Step, **fields: Any) -> list[Problem]:
    """The problems of a plan of these steps."""
    return problems(plan_of(*steps, **fields), TOOLS)


def call(tool: str, **args: Any) -> Step:
    """A step `a` that calls a tool."""
    return step("a", tool=tool, args=args)


def command(text: str) -> Step:
    return call("run_command", command=text)


CASES: list[tuple[int, list[Step], str, str, str, str]] = [
    (34, [step("a"), step("a")], "PLAN_DUPLICATE_ID", "a", "id", "give each its own"),
    (34, [step("a"), step("A"), step("A")], "PLAN_DUPLICATE_ID", "A", "id", "give each its own"),
    (36, [step("a", "a")], "PLAN_CYCLE", "a", "dependsOn", "Plan contains circular dependencies: the step depends on"),
    (37, [step("a", "c"), step("b", "a"), step("c", "b")], "PLAN_CYCLE", "a", "dependsOn", "a -> c -> b -> a (3"),
    (39, [step("a"), step("b", "aa")], "UNKNOWN_DEPENDENCY", "b", "dependsOn", "Unknown dependency: aa; no step"),
    (39, [step("build"), step("b", "biuld")], "UNKNOWN_DEPENDENCY", "b", "dependsOn", "did you mean 'build'?"),
    (41, [step("a", "__proto__")], "UNKNOWN_DEPENDENCY", "a", "dependsOn", "Unknown dependency: __proto__"),
    (42, [call("rm", path="x")], "UNKNOWN_TOOL", "a", "tool", "Unknown tool: rm"),
    (43, [call("Read_File", path="x")], "UNKNOWN_TOOL", "a", "tool", "did you mean 'read_file'?"),
    (44, [call("read_file ", path="x")], "UNKNOWN_TOOL", "a", "tool", "did you mean 'read_file'?"),
    (45, [call("__class__")], "UNKNOWN_TOOL", "a", "tool", "`plan tools` lists them"),
    (47, [call("read_file")], "INVALID_ARGS", "a", "args.path", "Invalid args for read_file: read_file needs 'path'"),
    (48, [call("read_file", path=["x"])], "INVALID_ARGS", "a", "args.path", 'should be a string; it is ["x"]'),
    (49, [call("read_file", path="x", limti=1)], "INVALID_ARGS", "a", "args.limti", "did you mean 'limit'?"),
    (49, [call("read_file", path="x", zz=1)], "INVALID_ARGS", "a", "args.zz", "it takes path, limit"),
    (50, [call("write_file", path="x", content=5)], "INVALID_ARGS", "a", "args.content", "should be a string; it is 5"),
    (51, [call("write_file", path="x", content={"base64": "aa"})], "INVALID_ARGS", "a", "args.content", "be a string"),
    *(
        (52, [call("run_command", command="ls", timeout=bad)], "INVALID_ARGS", "a", "args.timeout", "a number above 0")
        for bad in (0, -1, 1e9, "5", "{{inputs.x}}")
    ),
    (53, [call("note", text="$missing")], "BAD_REFERENCE", "a", "args.text", "for the literal text write $$missing"),
    (53, [step("load"), call("note", text="$laod.x")], "BAD_REFERENCE", "a", "args.text", "did you mean 'load'?"),
    (53, [call("note", text=[{"x": "see {{gone.x}}"}])], "BAD_REFERENCE", "a", "args.text.0.x", "{{{{gone.x}}}}"),
    (53, [call("note", text="$inputs.nme")], "BAD_REFERENCE", "a", "args.text", "did you mean 'name'?"),
    (55, [call("note", text="$")], "BAD_REFERENCE", "a", "args.text", "or $$ for a dollar sign"),
    (57, [call("note", text="$a.x")], "BAD_REFERENCE", "a", "args.text", "name an earlier step"),
    (53, [step("a", when="nobody.x")], "BAD_REFERENCE", "a", "when", "neither an earlier step"),
    (53, [step("a", when="@.x")], "BAD_REFERENCE", "a", "when", "write STEP.field"),
    (57, [step("a", when="a.x")], "BAD_REFERENCE", "a", "when", "neither an earlier step"),
    (59, [step("a", when="__import__('os')")], "BAD_EXPRESSION", "a", "when", "there is no function"),
    (61, [step("a", when="(" * 450 + "b" + ")" * 450)], "BAD_EXPRESSION", "a", "when", "nested deeper"),
    (61, [step("b"), step("a", when="!" * 100 + "b")], "BAD_EXPRESSION", "a", "when", "nested deeper"),
    (62, [step("a", when="(b")], "BAD_EXPRESSION", "a", "when", "not a JMESPath expression"),
    (62, [step("a", when="")], "BAD_EXPRESSION", "a", "when", "not a JMESPath expression"),
    (62, [step("b"), call("note", text="$b.x[")], "BAD_EXPRESSION", "a", "args.text", "not a JMESPath expression"),
    (62, [step("b"), call("note", text="$b.")], "BAD_EXPRESSION", "a", "args.text", "not a JMESPath expression"),
    (60, [step("b"), call("note", text="$b." + "x" * 1_001)], "BAD_EXPRESSION", "a", "args.text", "1000 are allowed"),
    (0, [step("b"), command("$b")], "BAD_REFERENCE", "a", "args.command", "run that file"),
    (0, [step("b"), command("echo `echo {{b}}`")], "BAD_REFERENCE", "a", "args.command", "pass it in `env`"),
    (0, [step("b"), call("run_python", code="x = '{{b}}'")], "BAD_REFERENCE", "a", "args.code", "outside quotes"),
    (0, [step("inputs")], "PLAN_SCHEMA", "inputs", "id", "give the step another id"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "code", "step_id", "field", "mend"), [each[1:] for each in CASES], ids=[str(each[0]) for each in CASES]
)
def test_a_fault_of_meaning_has_code_place_and_mend(
    steps: list[Step], code: str, step_id: str, field: str, mend: str
) -> None:
    [problem] = errors(found(*steps, inputs={"name": {"default": "x"}, "x": {"default": "x"}}))
    assert (problem.code, problem.step_id, problem.field) == (code, step_id, field)
    assert mend in problem.message


def test_an_expression_of_a_thousand_and_one_characters_is_refused_by_shape() -> None:
    from plansurvive.plans.definition.parsing import read_plan

    given = read_plan({"steps": [{"id": "a", "tool": "note", "when": "b" * 1_001}]})
    assert isinstance(given, list)
    assert (given[0].step_id, given[0].field) == ("a", "when")


def test_ids_that_differ_in_case_only_are_a_warning() -> None:
    [problem] = found(step("a"), step("A"))
    assert (problem.code, problem.step_id, problem.severity) == ("PLAN_DUPLICATE_ID", "A", "warning")
    assert errors([problem]) == []


def test_six_mistakes_in_one_plan_are_all_told() -> None:
    problems_found = found(
        step("a", "gone"),
        call("rm").model_copy(update={"id": "b"}),
        call("read_file").model_copy(update={"id": "c"}),
        step("d", uses=("nowhere",)),
        step("e", "f"),
        step("f", "e"),
        step("f2"),
        step("f2"),
    )
    assert {problem.code for problem in problems_found} == {
        *("UNKNOWN_DEPENDENCY", "UNKNOWN_TOOL", "INVALID_ARGS", "BAD_REFERENCE", "PLAN_CYCLE", "PLAN_DUPLICATE_ID")
    }


def test_a_reference_to_a_step_that_waits_for_this_one_is_told_with_its_field() -> None:
    given = found(step("step_1", args={"text": ["x", "$step_2"]}), step("step_2", "step_1"))
    assert [(problem.code, problem.step_id, problem.field) for problem in given] == [
        ("PLAN_CYCLE", "step_1", "dependsOn"),
        ("BAD_REFERENCE", "step_1", "args.text.1"),
    ]
    given = found(step("a", when="b"), step("b", "a"))
    assert [problem.field for problem in given] == ["dependsOn", "when"]


@pytest.mark.parametrize("size", [2_000, only_nightly(20_000)])
def test_a_ring_of_any_size_is_one_cycle_and_no_recursion_error(size: int) -> None:
    names = [f"s{index}" for index in range(size)]
    before = dict(zip(names, [names[-1], *names], strict=False))
    steps = [
        Step.model_construct(id=name, tool="sleep", args={"seconds": 1}, depends_on=[before[name]]) for name in names
    ]
    ring = Plan.model_construct(inputs={}, steps=steps)
    [problem] = problems(ring, TOOLS)
    assert problem.code == "PLAN_CYCLE"
    assert f"({size} steps)" in problem.message
    assert len(problem.message) < 300


def test_cycles_beside_each_other_are_all_named_once() -> None:
    pairs = [step(f"{name}{i}", f"{other}{i}") for i in range(200) for name, other in (("a", "b"), ("b", "a"))]
    assert [problem.step_id for problem in found(*pairs, step("last", "a0", "a1"))] == [f"a{i}" for i in range(200)]


def test_a_cycle_is_told_although_an_id_in_it_is_used_twice() -> None:
    first_of_two = found(step("a", "b"), step("b", "a"), step("a"))
    assert [problem.code for problem in first_of_two] == ["PLAN_DUPLICATE_ID", "PLAN_CYCLE"]
    by_value = found(step("a", uses=("b",)), step("b", "a"), step("a"))
    assert [problem.code for problem in by_value] == ["PLAN_DUPLICATE_ID", "PLAN_CYCLE", "BAD_REFERENCE"]


def test_a_reference_makes_a_cycle_stated_or_not() -> None:
    assert [problem.code for problem in found(step("a", uses=("b",)), step("b", uses=("a",)))] == [
        *("PLAN_CYCLE", "BAD_REFERENCE", "BAD_REFERENCE")
    ]


@pytest.mark.parametrize(
    "text", ["costs $5", "$5", "$1.50", "$HOME/x", "a $b", "$$", "$$x", "{{{{x}}}}", "${x}", "{x}"]
)
def test_other_dollar_signs_and_braces_are_no_problem(text: str) -> None:
    assert found(call("note", text=text)) == []


def test_a_place_that_waits_for_a_value_is_not_judged_before() -> None:
    assert found(step("b"), call("read_file", path="$b", limit="$b.n")) == []
    assert found(step("b"), call("http_request", url="{{b}}", method="{{b.method}}")) == []


def test_inputs_take_their_defaults_and_given_values() -> None:
    plan = plan_of(step("a"), inputs={"n": {"type": "integer", "default": 3}, "who": {}})
    assert input_values(plan, {"who": "ann"}) == ({"n": 3, "who": "ann"}, [])


@pytest.mark.parametrize(
    ("given", "code", "field", "mend"),
    [
        ({}, "MISSING_INPUT", "inputs.who", "--input who=VALUE"),
        ({"who": "x", "whom": "y"}, "UNKNOWN_INPUT", "inputs.whom", "did you mean 'who'?"),
        ({"who": 5}, "BAD_INPUT", "inputs.who", "should be a string; it is 5"),
        ({"who": "x", "n": True}, "BAD_INPUT", "inputs.n", "should be a whole number; it is true"),
    ],
)
def test_a_wrong_input_is_named(given: dict[str, Any], code: str, field: str, mend: str) -> None:
    plan = plan_of(step("a"), inputs={"n": {"type": "integer", "default": 3}, "who": {}})
    [problem] = input_values(plan, given)[1]
    assert (problem.code, problem.field) == (code, field)
    assert mend in problem.message


def test_a_default_of_another_type_is_told_before_the_plan_starts() -> None:
    [problem] = found(step("a"), inputs={"n": {"type": "integer", "default": "3"}})
    assert (problem.code, problem.field) == ("BAD_INPUT", "inputs.n.default")
