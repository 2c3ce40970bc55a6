"""Blocks, loops, alternatives, catches and undoing: every mistake has its code, its place and the way to mend it."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans import error_codes
from plansurvive.plans.definition.checks.constructs import STEP_CODES
from plansurvive.plans.definition.checks.validation import condition_problems, errors, problems
from plansurvive.plans.definition.parsing import read_plan, sound_part
from plansurvive.plans.definition.scopes import MAX_NESTING
from plansurvive.plans.model import MAX_STEPS, Plan, Problem
from tests.plans.building import TOOLS

Data = dict[str, Any]


def call(name: str, text: Any = "x", **fields: Any) -> Data:
    """The data of a step that notes a text."""
    return {"id": name, "tool": "note", "args": {"text": text}, **fields}


def block(name: str, *steps: Data, **fields: Any) -> Data:
    """The data of a block."""
    return {"id": name, "steps": list(steps), **fields}


def found(*steps: Data, **fields: Any) -> list[Problem]:
    """The problems of a plan of these steps."""
    plan = read_plan({"steps": list(steps), **fields})
    return plan if isinstance(plan, list) else problems(plan, TOOLS)


A = call("a")
LIST = ["x", "y"]
TWICE = [call("x"), call("x")]
DEEP: Data = call("last")
for _level in range(MAX_NESTING):
    DEEP = block("b", DEEP)

ERRORS: dict[str, tuple[list[Data], str, str | None, str, str]] = {
    "an id twice in a block": ([block("b", *TWICE)], "PLAN_DUPLICATE_ID", "b.x", "id", "give each its own"),
    "an id twice in a switch": (
        [{"id": "s", "switch": [{"when": "inputs.n", "steps": [call("x")]}, {"steps": [call("x")]}]}],
        "PLAN_DUPLICATE_ID", "s.x", "id", "give each its own",
    ),
    "an id twice in a catch": ([call("p", catch=[{"steps": TWICE}])], "PLAN_DUPLICATE_ID", "p.catch.x", "id", "own"),
    "a reserved id": ([block("b", call("status"))], "PLAN_SCHEMA", "b.status", "id", "already has a meaning inside"),
    "the name of an item": (
        [block("b", call("file"), forEach={"items": LIST, "as": "file"})], "PLAN_SCHEMA", "b.file", "id", "already has",
    ),
    "the name of an outer item": (
        [block("b", block("c", call("item")), forEach=LIST)], "PLAN_SCHEMA", "b.c.item", "id", "already has",
    ),
    "an inner step from outside": (
        [block("b", call("x")), call("y", "$x")], "BAD_REFERENCE", "y", "args.text", "write $b.x",
    ),
    "an inner step of a loop from outside": (
        [block("b", block("c", call("x")), forEach=LIST), call("y", when="x")],
        "BAD_REFERENCE", "y", "when", "it is inside the block 'b': outside of it, write $b[*].c.x",
    ),
    "a step of another block": (
        [block("b", call("x")), block("c", call("y", "{{x}}"))], "BAD_REFERENCE", "c.y", "args.text", "write $b.x",
    ),
    "a step of another case": (
        [{"id": "s", "switch": [{"when": "inputs.n", "steps": [call("x")]}, {"steps": [call("y", "$x")]}]}],
        "BAD_REFERENCE", "s.y", "args.text", "$s.x",
    ),
    "its own block": ([block("b", call("x", "$b"))], "BAD_REFERENCE", "b.x", "args.text", "block that contains this"),
    "its own value": ([block("b", call("x", "$x"))], "BAD_REFERENCE", "b.x", "args.text", "own value"),
    "its own value in its undo": (
        [call("p", undo={"tool": "note", "args": {"text": "{{p.path}}"}})], "BAD_REFERENCE", "p", "undo.args.text",
        "'{{p.path}}': in its own `undo`, the value of a step is called `value`; write {{value.path}}",
    ),
    "its own value as a whole in its undo": (
        [call("p", undo={"tool": "note", "args": {"text": "$p.path"}})], "BAD_REFERENCE", "p", "undo.args.text",
        "is called `value`; write $value.path",
    ),
    "its own value in a step of its undo": (
        [call("p", undo={"steps": [block("b", call("r", "{{p}}"))]})], "BAD_REFERENCE", "p.undo.b.r", "args.text",
        "is called `value`; write {{value}}",
    ),
    "its own value in a condition of its undo": (
        [call("p", undo={"steps": [call("r", when="p.bytes")]})], "BAD_REFERENCE", "p.undo.r", "when",
        "in its own `undo`, the value of 'p' is called `value`; write value.FIELD",
    ),
    "a step of its block in its undo": (
        [block("b", block("c", call("x")), forEach=LIST, undo={"steps": [call("r", "$x")]})],
        "BAD_REFERENCE", "b.undo.r", "args.text", "in the `undo` of 'b' its value is called `value`: write $value.c.x",
    ),
    "the value of a step in the undo of one inside it": (
        [block("b", call("x", undo={"steps": [call("r", "$b")]}))], "BAD_REFERENCE", "b.x.undo.r", "args.text",
        "block that contains this",
    ),
    "its own value in a step of an undo": (
        [call("p", undo={"steps": [call("r", "$r")]})], "BAD_REFERENCE", "p.undo.r", "args.text", "own value",
    ),
    "an item without a loop": ([call("x", "{{item}}")], "BAD_REFERENCE", "x", "args.text", "in a step with `forEach`"),
    "a round without repeat": ([block("b", call("x", "$round"))], "BAD_REFERENCE", "b.x", "args.text", "with `repeat`"),
    "an error outside of catch": ([call("x", when="error.code")], "BAD_REFERENCE", "x", "when", "of a `catch`"),
    "a status outside of finally": ([call("x", "$status")], "BAD_REFERENCE", "x", "args.text", "of a `finally`"),
    "a value outside of undo": ([call("x", "$value.id")], "BAD_REFERENCE", "x", "args.text", "in an `undo`"),
    "a misspelt outer step": ([A, block("b", call("x", "{{ab.c}}"), call("abc"))], "BAD_REFERENCE", "b.x", "args.text",
                              "did you mean 'abc'?"),
    "an unknown input inside": ([block("b", call("x", "$inputs.m"))], "BAD_REFERENCE", "b.x", "args.text", "no input"),
    "dependsOn an outer step": (
        [A, block("b", call("x", dependsOn=["a"]))],
        "UNKNOWN_DEPENDENCY", "b.x", "dependsOn", "'a' is not in the same block; write it into dependsOn of 'b'",
    ),
    "dependsOn an inner step": (
        [block("b", call("x")), call("y", dependsOn=["x"])], "UNKNOWN_DEPENDENCY", "y", "dependsOn", "you mean 'b'?",
    ),
    "dependsOn its own block": (
        [block("b", call("x", dependsOn=["b"]))], "UNKNOWN_DEPENDENCY", "b.x", "dependsOn", "'b' contains this step",
    ),
    "dependsOn in finally": (
        [block("b", call("x"), **{"finally": [call("y", dependsOn=["x"])]})],
        "UNKNOWN_DEPENDENCY", "b.finally.y", "dependsOn", "has ended before",
    ),
    "an unknown tool in a catch": (
        [call("p", catch=[{"steps": [{"id": "n", "tool": "rm"}]}])], "UNKNOWN_TOOL", "p.catch.n", "tool",
        "did you mean 'delete_file'?",
    ),
    "wrong arguments in an undo": (
        [call("p", undo={"tool": "delete_file", "args": {"path": "{{value}}", "pat": 1}})],
        "INVALID_ARGS", "p", "undo.args.pat", "did you mean 'path'?",
    ),
    "an unknown step in an undo": (
        [call("p", undo={"tool": "note", "args": {"text": "$gone"}})], "BAD_REFERENCE", "p", "undo.args.text", "not a",
    ),
    "a wrong step of an undo": (
        [call("p", undo={"steps": [call("r", "$gone")]})], "BAD_REFERENCE", "p.undo.r", "args.text", "not a step",
    ),
    "an unquotable reference inside": (
        [A, block("b", {"id": "x", "tool": "run_command", "args": {"command": "$a"}})],
        "BAD_REFERENCE", "b.x", "args.command", "run that file",
    ),
    "a list that does not parse": ([call("x", forEach="a.[")], "BAD_EXPRESSION", "x", "forEach.items", "JMESPath"),
    "a list as a text": ([A, call("x", forEach="{{a.b}}")], "BAD_EXPRESSION", "x", "forEach.items", "without braces"),
    "a list of an unknown step": ([call("x", forEach="$gone.b")], "BAD_REFERENCE", "x", "forEach.items", "'gone'"),
    "a list with an unknown step": ([call("x", forEach=["$gone"])], "BAD_REFERENCE", "x", "forEach.items.0", "'$gone'"),
    "a list of the item": ([call("x", forEach="item.b")], "BAD_REFERENCE", "x", "forEach.items", "'item'"),
    "a key that does not parse": ([call("x", forEach={"items": LIST, "key": "("})], "BAD_EXPRESSION", "x",
                                  "forEach.key", "JMESPath"),
    "a key twice": (
        [call("x", forEach={"items": [{"n": 1}, {"n": 1}], "key": "n"})], "BAD_KEY", "x", "forEach.key", "the key '1'",
    ),
    "a key that is missing": (
        [call("x", forEach={"items": [{"n": 1}, {"m": 1}], "key": "n"})], "BAD_KEY", "x", "forEach.key", "for item 1",
    ),
    "batches in the same plan": (
        [call("x", forEach={"items": LIST, "batch": 3})], "PLAN_SCHEMA", "x", "forEach.batch", "mode: plans",
    ),
    "until that does not parse": ([call("x", repeat={"until": "a ="})], "BAD_EXPRESSION", "x", "repeat.until", "JMES"),
    "until about an outer step": (
        [A, block("b", call("x"), repeat={"until": "a.ok"})], "BAD_REFERENCE", "b", "repeat.until", "has no field",
    ),
    "output of an outer step": ([A, block("b", call("x"), output="a")], "BAD_REFERENCE", "b", "output", "not a step"),
    "output of a call": ([call("x", output="a")], "PLAN_SCHEMA", "x", "output", "only a block"),
    "arguments of a block": ([block("b", A, args={"text": "x"})], "PLAN_SCHEMA", "b", "args", "calls no tool"),
    "the queue of a block": ([block("b", A, queue="gpu")], "PLAN_SCHEMA", "b", "queue", "set it on its steps"),
    "finally of a call": ([call("x", **{"finally": [A]})], "PLAN_SCHEMA", "x", "finally", "only a block or a plan"),
    "a default that is not last": (
        [{"id": "s", "switch": [{"steps": [call("x")]}, {"when": "inputs.n", "steps": [call("y")]}]}],
        "PLAN_SCHEMA", "s", "switch.0.when", "those after it never run",
    ),
    "a condition of a case": (
        [{"id": "s", "switch": [{"when": "gone", "steps": [call("x")]}, {"steps": [A]}]}],
        "BAD_REFERENCE", "s", "switch.0.when", "'gone' is neither",
    ),
    "a cycle in a block": (
        [block("b", call("x", dependsOn=["y"]), call("y", dependsOn=["x"]))], "PLAN_CYCLE", "b.x", "dependsOn", "x ->",
    ),
    "too deep": ([DEEP], "PLAN_TOO_DEEP", "b" + ".b" * (MAX_NESTING - 1) + ".last", "steps", "levels deep"),
    "too many steps": (
        [block(f"b{number}", *(call(f"x{other}") for other in range(200))) for number in range(MAX_STEPS // 200)],
        "PLAN_TOO_LARGE", None, "steps", "those inside blocks included; this one has 20100",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_a_mistake_in_control_flow_has_code_place_and_mend(name: str) -> None:
    steps, code, path, field, mend = ERRORS[name]
    [problem] = errors(found(*steps, inputs={"n": {"default": "x"}}))
    assert (problem.code, problem.step_id, problem.field) == (code, path, field)
    assert mend in problem.message


WARNINGS: dict[str, tuple[list[Data], str, str, str, str]] = {
    "no default": (
        [{"id": "s", "switch": [{"when": "inputs.n", "steps": [A]}]}], "NO_DEFAULT_CASE", "s", "switch", "nothing runs",
    ),
    "a second catch of all": (
        [call("x", catch=[{"steps": [A]}, {"codes": ["EXISTS"], "steps": [A]}])], "NEVER_RUNS", "x", "catch.1", "earl",
    ),
    "a code caught twice": (
        [call("x", catch=[{"codes": ["EXISTS"], "steps": [A]}, {"codes": ["EXISTS"], "steps": [A]}])],
        "NEVER_RUNS", "x", "catch.1.codes", "takes EXISTS",
    ),
    "a cancellation": (
        [call("x", catch=[{"codes": ["CANCELLED"], "steps": [A]}])], "NEVER_RUNS", "x", "catch.0.codes", "`finally`",
    ),
    "a misspelt code": (
        [call("x", catch=[{"codes": ["COMAND_FAILED"], "steps": [A]}])],
        "UNKNOWN_CODE", "x", "catch.0.codes", "did you mean 'COMMAND_FAILED'?",
    ),
    "a hidden step": (
        [call("item"), call("x", "{{item}}", forEach=LIST)], "HIDDEN_NAME", "x", "forEach.as", "hides the step 'item'",
    ),
    "a key of the name": (
        [call("g"), call("x", forEach={"items": "$g", "key": "item.n"})], "ALWAYS_NULL", "x", "forEach.key", "`name`",
    ),
    "until of the name": ([call("x", repeat={"until": "x.ok"})], "ALWAYS_NULL", "x", "repeat.until", "round itself"),
    "attempts of a block": ([block("b", A, timeout=5)], "NO_EFFECT", "b", "timeout", "no effect on a block"),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNINGS)
def test_what_is_probably_not_meant_is_a_warning(name: str) -> None:
    steps, code, path, field, mend = WARNINGS[name]
    [problem] = found(*steps, inputs={"n": {"default": "x"}})
    assert (problem.severity, problem.code, problem.step_id, problem.field) == ("warning", code, path, field)
    assert mend in problem.message


def test_a_plan_of_every_construct_has_no_problem() -> None:
    work = block(
        "work",
        call("look", "{{file.name}} {{index}} {{key}} {{list.n}}"),
        block("try", call("one", "{{round}} {{look}}"), repeat={"until": "one.ok", "limit": 3}),
        {"id": "choose", "switch": [{"when": "look == 'x'", "steps": [call("left")]}, {"steps": [call("right")]}]},
        call("done", "{{try.one}} {{choose.left}}", dependsOn=["choose"], when="file.size > `0`"),
        forEach={"items": "$list", "as": "file", "key": "name", "tolerate": "10%", "maxParallel": 3},
        when="list",
        output="{a: look, b: done}",
        catch=[{"codes": ["TOOL_FAILED"], "steps": [call("notify", "{{error.code}} {{look}} {{file}} {{list}}")]}],
    ) | {"finally": [call("clean", "{{status}} {{look}} {{list}}"), call("then", "$clean")]}
    pay = call("pay", undo={"tool": "note", "args": {"text": "{{value.id}} {{list}}"}})
    outer = block("outer", block("inner", call("leaf", "{{item}} {{list}}"), forEach="item.files"), forEach="list")
    steps = [call("list"), work, pay, outer, call("end", "{{work[0].a}} {{outer[*].inner}}")]
    bye = [call("bye", "{{status}} {{pay.id}}")]
    assert found(*steps, **{"finally": bye, "outputs": {"x": "work[*].a", "y": "inputs"}}, rollback=True) == []


def test_names_of_constructs_remain_free_for_the_steps_of_a_plan() -> None:
    names = ["item", "index", "key", "round", "error", "status", "value", "catch", "finally", "undo"]
    assert found(*(call(name) for name in names), call("x", "{{status}} {{error}} {{key}}")) == []
    [problem] = found(call("finally"), **{"finally": [call("x")]})
    assert (problem.code, problem.step_id) == ("PLAN_SCHEMA", "finally")


def test_a_cycle_through_a_block_is_found_where_the_blocks_are() -> None:
    given = found(block("b", call("x", "$c")), call("c", dependsOn=["b"]))
    assert [(each.code, each.step_id, each.field) for each in given] == [
        *(("PLAN_CYCLE", "b", "dependsOn"), ("BAD_REFERENCE", "b.x", "args.text"))
    ]
    assert "'c' itself waits for 'b'" in given[1].message


def test_outputs_of_a_plan_name_its_steps() -> None:
    [problem] = found(block("b", A), outputs={"x": "bb.a", "y": "b.a"})
    assert (problem.code, problem.field) == ("BAD_REFERENCE", "outputs.x")
    [problem] = found(A, outputs={"x": "a["})
    assert (problem.code, problem.field) == ("BAD_EXPRESSION", "outputs.x")


def test_all_mistakes_at_all_levels_are_told_at_once() -> None:
    steps = [
        block("b", call("x", "$gone"), block("c", {"id": "y", "tool": "rm"}, call("z", when="("))),
        call("w", "$q"),
    ]
    assert {(each.step_id, each.code) for each in found(*steps)} == {
        *(("b.x", "BAD_REFERENCE"), ("b.c.y", "UNKNOWN_TOOL"), ("b.c.z", "BAD_EXPRESSION"), ("w", "BAD_REFERENCE"))
    }


def test_steps_of_another_queue_are_not_checked_at_any_level() -> None:
    plan = Plan.model_validate({"steps": [block("b", {"id": "x", "tool": "render", "queue": "gpu"})]})
    assert [each.code for each in problems(plan, TOOLS)] == ["UNKNOWN_TOOL"]
    assert problems(plan, TOOLS, {"b.x"}) == []


def test_expressions_that_do_not_parse_are_found_at_every_level() -> None:
    steps = [block("b", call("x", when="("), forEach="a.["), {"id": "s", "switch": [{"when": ")", "steps": [A]}]}]
    plan = Plan.model_validate({"steps": steps, "finally": [call("y", when="(")]})
    assert [(each.step_id, each.field) for each in condition_problems(plan)] == [
        *(("b", "forEach.items"), ("b.x", "when"), ("s", "switch.0.when"), ("finally.y", "when"))
    ]


SHAPES: list[tuple[Data, str, str]] = [
    (block("b", {"id": "x"}), "b.x", "tool"),
    (block("b", call("x", timeout=-1)), "b.x", "timeout"),
    (block("b", call("x", when=5)), "b.x", "when"),
    ({"id": "b", "steps": []}, "b", "steps"),
    ({"id": "b", "tool": "note", "steps": [A]}, "b", "tool"),
    ({"id": "s", "switch": [{"when": "a", "steps": [{"tool": "note"}]}]}, "s.#1", "id"),
    ({"id": "s", "switch": [{"when": "a"}]}, "s", "switch.0.steps"),
    (call("p", catch=[{"codes": "X", "steps": [A]}]), "p", "catch.0.codes"),
    (call("p", catch=[{"steps": [call("n", retry={"atempts": 1})]}]), "p.catch.n", "retry.atempts"),
    (block("b", A, **{"finally": [call("c", tool=5)]}), "b.finally.c", "tool"),
    (call("p", undo={}), "p", "undo"),
    (call("p", undo={"steps": [{"id": "a b", "tool": "note"}]}), "p.undo.a b", "id"),
    (call("x", forEach={"items": 5}), "x", "forEach.items"),
    (call("x", forEach={"item": []}), "x", "forEach.item"),
    (call("x", forEach={"as": "f"}), "x", "forEach.items"),
    (call("x", forEach={"items": [], "tolerate": "1.5%"}), "x", "forEach.tolerate"),
    (call("x", repeat={}), "x", "repeat.until"),
]


@pytest.mark.parametrize(("step", "path", "field"), SHAPES)
def test_a_fault_of_shape_inside_a_step_has_its_place(step: Data, path: str, field: str) -> None:
    given = read_plan({"steps": [step]})
    assert isinstance(given, list)
    assert (path, field) in [(each.step_id, each.field) for each in given]


def test_the_rest_of_a_block_is_checked_beside_a_fault_of_shape() -> None:
    data = {"steps": [block("b", call("x", timeout=-1), call("y", "$gone"))]}
    sound = sound_part(data)
    assert sound is not None
    assert [(each.step_id, each.code) for each in problems(sound, TOOLS)] == [("b.y", "BAD_REFERENCE")]
    assert sound_part({"steps": [block("b", {"id": "x"})]}) is None


def test_the_codes_that_hints_know_are_explained() -> None:
    assert sorted(STEP_CODES - {*error_codes.STEPS, *error_codes.PLANS}) == []


def test_large_arguments_are_found_at_every_level() -> None:
    given = found(block("b", call("x", "t" * 70_000)), call("p", undo={"tool": "note", "args": {"text": "t" * 70_000}}))
    assert [(each.code, each.step_id) for each in given] == [("PLAN_TOO_LARGE", "b.x"), ("PLAN_TOO_LARGE", "p")]


LOOP: Data = {"items": ["a", "b"]}


@pytest.mark.parametrize(
    "rule", [{**LOOP, "maxFailures": 1}, {**LOOP, "as": "!"}, {"item": ["a"]}, {**LOOP, "tolerate": "1.5%"}, 5]
)
def test_a_fault_of_a_loop_is_not_said_again_of_what_uses_its_items(rule: Any) -> None:
    data = {"steps": [{**block("l", call("x", "{{item}}"), call("y", "$gone")), "forEach": rule}]}
    sound = sound_part(data)
    found = problems(sound, TOOLS) if sound is not None else []
    assert [each.step_id for each in found if each.code == "BAD_REFERENCE"] in ([], ["l.y"])
