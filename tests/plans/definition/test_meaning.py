"""Conditions and references that parse, and cannot mean what they say, are found before the plan runs."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.features.children.language import LANGUAGE as OF_CHILDREN
from plansurvive.plans.definition.checks.validation import certain, errors, problems
from plansurvive.plans.definition.durable_tools import DurableTool
from plansurvive.plans.definition.language import Language
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.errors import BadReference
from plansurvive.plans.expressions.references import in_text, look_up
from plansurvive.plans.model import Problem
from tests.plans.building import TOOLS, spec

Data = dict[str, Any]


def closed(**fields: Any) -> Data:
    """The schema of an object with these fields and no others."""
    return {"type": "object", "properties": fields, "additionalProperties": False}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
ENTRY = closed(name=TEXT, type={"type": "string", "enum": ["file", "directory"]}, size=NUMBER)
KNOWN = TOOLS | {
    tool.name: tool
    for tool in (
        spec("build", value_schema=closed(stdout={"anyOf": [TEXT, {"type": "object"}]}, exitCode=NUMBER)),
        spec("list", value_schema={"type": "array", "items": ENTRY}),
        spec("text", value_schema=TEXT),
        spec(
            "send",
            value_schema=closed(status=NUMBER, headers={"type": "object", "additionalProperties": TEXT}, body={}),
        ),
        spec("agent", {"objective": TEXT, "outputSchema": {"default": None}}, value_schema=TEXT),
        spec(
            "ask", {"question": TEXT, **{name: {"default": None} for name in ("schema", "choices")}}, value_schema=TEXT
        ),
        spec("plan", {name: {"default": None} for name in ("steps", "inputs")}, value_schema={"type": "object"}),
    )
}
LANGUAGE = Language(
    tools=[DurableTool("agent", schema_args=("outputSchema",)), DurableTool("ask", schema_args=("schema", "choices"))]
)
JUDGED = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
BEFORE: list[Data] = [
    {"id": "build", "tool": "build"},
    {"id": "ls", "tool": "list"},
    {"id": "text", "tool": "text"},
    {"id": "send", "tool": "send"},
    {"id": "any", "tool": "note", "args": {"text": "x"}},
    {"id": "judge", "tool": "agent", "args": {"objective": "o", "outputSchema": JUDGED}},
    {"id": "ask", "tool": "ask", "args": {"question": "q", "schema": closed(count=NUMBER)}},
    {"id": "each", "tool": "build", "forEach": "ls"},
    {"id": "work", "steps": [{"id": "one", "tool": "build"}, {"id": "two", "tool": "text"}]},
    {"id": "made", "steps": [{"id": "one", "tool": "build"}], "output": "{code: one.exitCode, all: one}"},
    {"id": "safe", "tool": "build", "catch": [{"steps": [{"id": "n", "tool": "text"}]}]},
]  # fmt: skip


def found(*steps: Data, language: Language = LANGUAGE, **fields: Any) -> list[Problem]:
    """The problems of a plan of these steps after those of BEFORE."""
    inputs = {"n": {"type": "integer", "default": 1}, "name": {"default": "x"}}
    plan = read_plan({"steps": [*BEFORE, *steps], "inputs": inputs, **fields})
    assert not isinstance(plan, list), plan
    return problems(plan, KNOWN, language=language)


def noted(text: Any, **fields: Any) -> Data:
    """A step that notes a text."""
    return {"id": "x", "tool": "note", "args": {"text": text}, **fields}


CANNOT_EXIST = {
    "$build.exitcode": "no field 'exitcode'; did you mean 'exitCode'?",
    "code {{build.code}}": "no field 'code'",
    "$ls[0].nam": "did you mean 'name'?",
    "$ls[*].sizes": "did you mean 'size'?",
    "$ls[?typ == 'file'].name": "did you mean 'type'?",
    "{{ls | [0].nme}}": "did you mean 'name'?",
    "$each[*].exitcode": "did you mean 'exitCode'?",
    "$work.on": "did you mean 'one'?",
    "$work.one.exit": "did you mean 'exitCode'?",
    "$made.codes": "did you mean 'code'?",
    "$made.all.exit": "did you mean 'exitCode'?",
    "$ask.cont": "did you mean 'count'?",
    "$send.state": "did you mean 'status'?",
}


@pytest.mark.parametrize("text", CANNOT_EXIST)
def test_a_field_that_cannot_exist_is_an_error(text: str) -> None:
    [problem] = found(noted(text))
    assert (problem.code, problem.severity, problem.field) == ("BAD_REFERENCE", "error", "args.text")
    assert CANNOT_EXIST[text] in problem.message


LOOPS: list[Data] = [
    {"id": "deep", "steps": [{"id": "in", "steps": BEFORE[:1], "forEach": [1]}], "forEach": [1]},
    {"id": "poll", "tool": "build", "repeat": {"until": "exitCode == `0`", "keep": "all"}},
]
ENTRIES = [{"exitCode": 1, "stdout": "x"}]
VALUES: Data = {"each": ENTRIES, "poll": ENTRIES, "deep": [{"in": [{"build": ENTRIES[0]}]}]}
FAILING = {
    "{{each.exitCode}}": "'{{each.exitCode}}': the value of the loop 'each' is a list; for all items write"
    " {{each[*].exitCode}}, for the first {{each[0].exitCode}}",
    "$each.exitCode": "for all items write $each[*].exitCode, for the first $each[0].exitCode",
    '{{each."exitCode"}}': 'write {{each[*]."exitCode"}}, for the first',
    "{{deep.in.build.exitCode}}": "for all items write {{deep[*].in.build.exitCode}}, for the first {{deep[0].in.build",
    "{{deep[0].in.build.exitCode}}": "the loop 'deep[0].in' is a list; for all items write {{deep[0].in[*].build.exit",
    "$each.stdout[0].a[*].b[?c] | [0].d": "for the first $each[0].stdout[0].a[*]",
    "$each.exitCode.{a: b}": "for the first $each[0].exitCode.{a: b}",
    "$poll.exitCode": "the value of 'poll' is the list of its rounds (`keep: all`); for all of them write"
    " $poll[*].exitCode, for the last $poll[-1].exitCode",
}


@pytest.mark.parametrize("text", FAILING)
def test_a_field_of_the_list_of_a_loop_fails_and_is_an_error_before_the_plan_starts(text: str) -> None:
    given = found(*LOOPS, noted(text))
    [problem] = certain(given)
    assert (problem.code, problem.severity, problem.field) == ("BAD_REFERENCE", "error", "args.text")
    assert FAILING[text] in problem.message
    assert not errors(given), "plans that run are edited, and replayed, as they were"
    [reference] = in_text(text)
    with pytest.raises(BadReference):
        look_up(reference, VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "{{each | length(@)}}",
        "{{each.exitCode || 'x'}}",
        "$each.exitCode | not_null(@, 'x')",
        "$each.length(@)",
        "$each[*].exitCode",
        "{{deep[].in[].build.exitCode}}",
        "{{each.exitCode == `1`}}",
        "{{deep[*].in.x}}",
        "$each.{a: exitCode}",
    ],
)
def test_a_path_that_gives_something_for_a_list_is_no_error(text: str) -> None:
    assert not errors(certain(found(*LOOPS, noted(text))))
    [reference] = in_text(text)
    look_up(reference, VALUES)


def test_a_field_of_a_list_in_a_condition_is_no_error() -> None:
    assert [each.code for each in certain(found(noted("x", when="each.exitCode")))] == ["ALWAYS_NULL"]


CONDITIONS = {
    "build.exitcode == `0`": "did you mean 'exitCode'?",
    "length(ls[?nme == 'a']) > `0`": "did you mean 'name'?",
    "ls[0].sise > `0` || work.one.exitCod == `0`": "did you mean 'size'?",
    "max_by(ls, &size).name == work.three": "no field 'three'",
}


@pytest.mark.parametrize("when", CONDITIONS)
def test_a_condition_on_a_field_that_cannot_exist_is_an_error_and_not_a_silent_skip(when: str) -> None:
    given = errors(found(noted("x", when=when)))
    assert {(problem.code, problem.field) for problem in given} == {("BAD_REFERENCE", "when")}
    assert CONDITIONS[when] in given[0].message


DOUBTFUL = {
    "$text.lines": ("ALWAYS_NULL", "there is no 'lines' here: the value is a text"),
    "$ls.name": ("ALWAYS_NULL", "the value is a list; write [0].name, or [*].name for all"),
    "$judge.okay": ("ALWAYS_NULL", "no field 'okay'; did you mean 'ok'?"),
    "{{build.exitCode == '0'}}": ("NEVER_TRUE", "a number is compared with a text"),
    "{{ $any.x }}": ("NOT_A_REFERENCE", "{{any.field}}"),
    "{{length(any)}}": ("NOT_A_REFERENCE", "{{any | length(@)}}"),
    "of {{ inputs name }}": ("NOT_A_REFERENCE", "{{inputs.field}}"),
}


@pytest.mark.parametrize("text", DOUBTFUL)
def test_a_reference_that_probably_means_something_else_is_a_warning(text: str) -> None:
    [problem] = found(noted(text))
    code, mend = DOUBTFUL[text]
    assert (problem.code, problem.severity, problem.field) == (code, "warning", "args.text")
    assert mend in problem.message


def commanded(command: str, **args: Any) -> Data:
    return {"id": "x", "tool": "run_command", "args": {"command": command, **args}}


@pytest.mark.parametrize("command", ["echo $build", 'test -n "${build}" && ls', "a=1; echo $a $build"])
def test_a_shell_variable_that_is_called_like_a_step_is_a_warning(command: str) -> None:
    [problem] = found(commanded(command))
    assert (problem.code, problem.severity, problem.field) == ("NOT_A_REFERENCE", "warning", "args.command")
    assert "write {{build}}" in problem.message


@pytest.mark.parametrize(
    "given",
    [
        commanded("echo $HOME $1 $other"),
        commanded("build=1; echo $build"),
        commanded("for build in a b; do echo $build; done"),
        commanded("ls | while read -r build; do echo $build; done"),
        commanded(r"echo \$build $$build"),
        commanded("echo $build", env={"build": "$build"}),
        commanded("echo {{build.exitCode}}"),
    ],
)
def test_a_shell_variable_that_is_set_or_is_no_step_is_none(given: Data) -> None:
    assert found(given) == []


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("if x\n  pass", "the code is not Python: line 1: expected ':'"),
        ("print('a'", "the code is not Python: line 1: '(' was never closed"),
        ("x = {{any}}\n  y", "does not parse with its values inserted"),
    ],
)
def test_python_that_does_not_parse_is_an_error(code: str, why: str) -> None:
    [problem] = errors(found({"id": "x", "tool": "run_python", "args": {"code": code}}))
    assert (problem.field, why in problem.message) == ("args.code", True), problem.message


@pytest.mark.parametrize("code", ["x = {{any}}\nprint(x)", "d = {{{{}}}}", "print('{{{{any}}}}')", "", "x = {1: 2}"])
def test_python_that_parses_with_its_values_has_no_problem(code: str) -> None:
    assert found({"id": "x", "tool": "run_python", "args": {"code": code}}) == []


WARNED = {
    "build.exitCode == '0'": ("NEVER_TRUE", "a number is compared with a text"),
    "text > `3`": ("NEVER_TRUE", "only numbers can be compared by size"),
    "any.x > '3'": ("NEVER_TRUE", "one side is a text"),
    'any[?type == "file"]': ("NEVER_TRUE", "write 'file' for the text"),
    "any[?done == true]": ("NEVER_TRUE", "write `true` in backticks"),
    "inputs.m == `1`": ("ALWAYS_NULL", "has no field 'm'; it has n, name"),
    "inputs.n == 'x'": ("NEVER_TRUE", "a number is compared with a text"),
    "!build.exitCode": ("ALWAYS_NULL", "the value is true or false; for !x.exitCode write !(x.exitCode)"),
    "`false`": ("CONSTANT_CONDITION", "never holds"),
    "'yes'": ("CONSTANT_CONDITION", "always holds"),
    "any[?done == True]": ("NEVER_TRUE", "write `true` in backticks"),
    "any.x == 'a' | any.y == 'b'": ("ALWAYS_NULL", "or is written ||"),
    "ls[?type == `3`]": ("NEVER_TRUE", "a text is compared with a number"),
}


@pytest.mark.parametrize("when", WARNED)
def test_a_condition_that_is_the_same_whatever_happens_is_a_warning(when: str) -> None:
    [problem] = found(noted("x", when=when))
    code, mend = WARNED[when]
    assert (problem.code, problem.severity, problem.field) == (code, "warning", "when")
    assert mend in problem.message


UNQUOTED = {
    "any > 0": ("BAD_EXPRESSION", "a number is written in backticks, as in a > `0`"),
    "any.x == -1": ("BAD_EXPRESSION", "in backticks"),
    "any == true": ("BAD_REFERENCE", "write `true` in backticks"),
    "any == True": ("BAD_REFERENCE", "write `true` in backticks"),
    "any == None": ("BAD_REFERENCE", "write `null` in backticks"),
    "any-thing.x == `0`": ("BAD_EXPRESSION", "in YAML all of it in quotes: '\"any-thing\".x == `0`'"),
    "any == done": ("BAD_REFERENCE", "or 'done' in single quotes if it is a text"),
    'any == "done"': ("BAD_REFERENCE", "'done' in single quotes"),
}


@pytest.mark.parametrize("when", UNQUOTED)
def test_a_number_or_a_word_without_quotes_is_an_error_that_says_how_to_write_it(when: str) -> None:
    [problem] = errors(found(noted("x", when=when)))
    code, mend = UNQUOTED[when]
    assert (problem.code, problem.field) == (code, "when")
    assert mend in problem.message


PATHS = {
    "{{any.exit-code}}": ("BAD_EXPRESSION", 'write {{any."exit-code"}}'),
    "$any.exit-code": ("BAD_EXPRESSION", 'write $any."exit-code"'),
    "{{any.0.name}}": ("BAD_EXPRESSION", "write {{any[0].name}}"),
    "{{any | length(@) > 0}}": ("BAD_EXPRESSION", "write {{any | length(@) > `0`}}"),
    "{{any.x or 'none'}}": ("BAD_EXPRESSION", "write {{any.x || 'none'}}"),
    "{{any['x']}}": ("ALWAYS_NULL", "write {{any.x}}"),
    '$any["x-y"].z': ("ALWAYS_NULL", 'write $any."x-y".z'),
}


@pytest.mark.parametrize("text", PATHS)
def test_a_reference_as_another_language_has_it_is_answered_with_the_one_that_it_means(text: str) -> None:
    [problem] = found(noted(text))
    assert problem.code == PATHS[text][0]
    assert PATHS[text][1] in problem.message


@pytest.mark.parametrize("when", ["any.x.contains('y')", "contains(any.x)", "any.x || length(any.x, any.y)"])
def test_a_function_with_too_few_or_too_many_values_is_refused_before_the_plan_runs(when: str) -> None:
    [problem] = found(noted("x", when=when))
    assert (problem.severity, [each.severity for each in certain([problem])]) == ("warning", ["error"])
    assert "takes" in problem.message


UNDONE = {
    "{{result.path}}": "it is called `value` here: write {{value.path}}",
    "{{output.path}}": "write {{value.path}}",
    "$result": "write $value",
    "{{self.path}}": "write {{value.path}}",
    "{{step.output.path}}": "write {{value.path}}",
    "{{this.result[0]}}": "write {{value",
}


@pytest.mark.parametrize("text", UNDONE)
@pytest.mark.parametrize("is_block", [False, True])
def test_the_value_of_a_step_has_one_name_in_its_undo(text: str, is_block: bool) -> None:
    call = {"tool": "note", "args": {"text": text}}
    [problem] = found({"id": "x", "tool": "text", "undo": {"steps": [{"id": "y", **call}]} if is_block else call})
    assert problem.code == "BAD_REFERENCE"
    assert UNDONE[text] in problem.message


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"id": "o", "tool": "build", "catch": [{"steps": [noted("{{err.message}}")]}]}, "write {{error.message}}"),
        ({"id": "o", "steps": BEFORE[:1], "finally": [noted("{{outcome}}")]}, "write {{status}}"),
        (noted("{{attempt}}", repeat={"until": "@ == 'x'"}), "write {{round}}"),
        (noted("{{idx}}", forEach="ls"), "write {{index}}"),
        ({"id": "o", "tool": "text", "undo": {"steps": [noted("y", when="result.path")]}}, "called `value` here"),
    ],
)
def test_a_variable_of_a_construct_is_named_for_that_of_another_program(step: Data, says: str) -> None:
    [problem] = found(step)
    assert problem.code == "BAD_REFERENCE"
    assert says in problem.message


TAKES = KNOWN | {
    "takes": spec(
        "takes", {
            "names": {"anyOf": [{"type": "array"}, {"type": "null"}], "default": None},
            "number": {"type": "number", "default": 0}, "text": TEXT | {"default": ""}, "any": {"default": None},
            "map": {"type": "object", "default": {}},
        },
    )
}  # fmt: skip
CERTAIN: dict[str, tuple[str, str, Data]] = {
    "a loop over a text": ("forEach.items", "'$text' is a text: find_files gives", noted("x", forEach="$text")),
    "over a field that is one": (
        "forEach.items", "'work.two' is a text: find_files gives", noted("x", forEach="work.two")
    ),
    "over a number": ("forEach.items", "'build.exitCode' is a number", noted("x", forEach="build.exitCode")),
    "over an object": ("forEach.items", "'$work' is an object: take a field of it", noted("x", forEach="$work")),
    "over one with lists": ("forEach.items", "its lists are files; write $lists.files", noted("x", forEach="$lists")),
    "over an input": ("forEach.items", "'$inputs.name' is a text", noted("x", forEach="$inputs.name")),
    "a list that is a text": (
        "args.names", "'names' should be a list, and '$text' is a text: find_files gives",
        {"id": "x", "tool": "takes", "args": {"names": "$text"}},
    ),
    "a text that is a list": (
        "args.text", "should be a string, and '$ls' is a list: as a text it is written {{ls}}",
        {"id": "x", "tool": "takes", "args": {"text": "$ls"}},
    ),
    "a number that is a text": (
        "args.number", "should be a number, and '$ls[0].name' is a text",
        {"id": "x", "tool": "takes", "args": {"number": "$ls[0].name"}},
    ),
    "an object that is a text, in an undo": (
        "undo.args.map", "should be an object, and '$value' is a text",
        {"id": "x", "tool": "text", "undo": {"tool": "takes", "args": {"map": "$value"}}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CERTAIN)
def test_a_value_of_a_type_that_cannot_be_there_is_refused_before_the_plan_runs(name: str) -> None:
    field, says, step = CERTAIN[name]
    lists = {
        "id": "lists",
        "tool": "agent",
        "args": {"objective": "o", "outputSchema": closed(files={"type": "array"})},
    }
    plan = read_plan({"steps": [*BEFORE, lists, step], "inputs": {"name": {"default": "x"}}})
    assert not isinstance(plan, list)
    [problem] = problems(plan, TAKES, language=LANGUAGE)
    assert (problem.code, problem.field, problem.severity) == ("BAD_REFERENCE", field, "warning")
    assert says in problem.message
    assert errors(certain([problem]))


FITS: list[Data] = [
    noted("x", forEach="$ls"),
    noted("x", forEach="ls[].name"),
    noted("x", forEach="$any"),
    noted("x", forEach="any || text"),
    noted("x", forEach="values(work)"),
    noted("x", forEach="$safe"),
    {"id": "x", "tool": "takes", "args": {"names": "$ls[*].name", "number": "$build.exitCode", "text": "$text"}},
    {"id": "x", "tool": "takes", "args": {"names": "$any", "text": "$build.stdout", "any": "$ls", "map": "$work"}},
    {"id": "x", "tool": "takes", "args": {"map": {"text": "$ls"}, "text": "{{ls}}"}},
]


@pytest.mark.parametrize("step", FITS, ids=range(len(FITS)))
def test_a_value_that_may_have_the_type_is_no_problem(step: Data) -> None:
    plan = read_plan({"steps": [*BEFORE, step]})
    assert not isinstance(plan, list)
    assert problems(plan, TAKES, language=LANGUAGE) == []


FINE = [
    noted("$build.stdout"),
    noted("$build.stdout.file"),
    noted("{{send.headers.etag}} {{send.body.any.thing}}"),
    noted("{{ls[?type == 'file'] | [0].name}} {{ls[].size}} {{ls | length(@)}}"),
    noted("{{any.x.y[0].z}} {{safe.whatever}} {{judge.ok}} {{ask.count}}"),
    noted("{{{{any.x}}}} {{ .Values.any }} {{#if}} {{other thing}} {{ }}"),
    noted("x", when="build.exitCode > `0` && ls[0].size >= `1.5` && build.exitCode != `null`"),
    noted("x", when="any.a == any.b && any[?left == right] && judge.ok == `true` && inputs.n < `3`"),
    noted("x", when='any."odd name" == \'a\' || any.x == "any".y'),
    noted("x", when="sort_by(ls, &size)[0].name == 'a' && ls[*].{n: name}[0].n == 'b'"),
    noted("{{item.name}} {{item.size}} {{index}} {{key}}", forEach="ls[?size > `0`]", when="item.size > `3`"),
    noted("x", repeat={"until": "@ == 'x'"}),
    {"id": "x", "tool": "build", "repeat": {"until": "exitCode == `0`"}},
    noted("$work.one.exitCode", when="work.two == 'x'"),
]


@pytest.mark.parametrize("step", FINE, ids=range(len(FINE)))
def test_what_may_exist_is_no_problem(step: Data) -> None:
    assert found(step) == []


INSIDE: dict[str, tuple[Data, str, str, str]] = {
    "an item": ({"steps": [noted("{{item.nme}}")], "forEach": "ls"}, "y.x", "args.text", "did you mean 'name'?"),
    "an item by another name": (
        {"steps": [noted("{{f.nme}}")], "forEach": {"items": "$ls", "as": "f"}}, "y.x", "args.text", "'name'",
    ),
    "an error": (
        {"tool": "text", "catch": [{"steps": [noted("{{error.reason}}")]}]}, "y.catch.x", "args.text", "code, message",
    ),
    "a value to undo": (
        {"tool": "build", "undo": {"tool": "note", "args": {"text": "{{value.exit}}"}}}, "y", "undo.args.text", "exit",
    ),
    "the value of a round": ({"tool": "build", "repeat": {"until": "exit == `0`"}}, "y", "repeat.until", "'exitCode'"),
    "a case": ({"switch": [{"when": "build.ok", "steps": [noted("x")]}, {"steps": [noted("z") | {"id": "z"}]}]},
               "y", "switch.0.when", "no field 'ok'"),
    "the list of a loop": ({"tool": "text", "forEach": "build.files"}, "y", "forEach.items", "no field 'files'"),
    "an output": ({"steps": [{"id": "b", "tool": "build"}], "output": "b.exit"}, "y", "output", "'exitCode'"),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_fields_are_known_inside_constructs(name: str) -> None:
    fields, path, field, mend = INSIDE[name]
    [problem] = errors(found({"id": "y", **fields}))
    assert (problem.code, problem.step_id, problem.field) == ("BAD_REFERENCE", path, field)
    assert mend in problem.message


def test_outputs_of_a_plan_have_fields_that_exist() -> None:
    [problem] = found(outputs={"code": "build.exitCode", "bad": "build.exit"})
    assert (problem.code, problem.step_id, problem.field) == ("BAD_REFERENCE", None, "outputs.bad")


def test_without_schemas_of_values_nothing_is_refused() -> None:
    """Facts recorded before there were such schemas: a plan that was valid stays valid when it is replayed."""
    plan = read_plan({"steps": [{"id": "a", "tool": "note", "args": {"text": "x"}}, noted("$a.b", when="a.c == `1`")]})
    assert not isinstance(plan, list)
    assert problems(plan, TOOLS) == []


HOSTILE: list[Any] = [
    {"type": ["object"]}, {"type": "object", "properties": []}, {"properties": {"a": 5}, "type": "object"},
    {"$ref": "#"}, {"type": "array", "items": 3}, {"anyOf": [{}]}, {"type": {}},
    {"type": "object", "additionalProperties": 0},
]  # fmt: skip


@pytest.mark.parametrize("schema", HOSTILE, ids=range(len(HOSTILE)))
def test_an_odd_schema_of_an_answer_raises_nothing(schema: Any) -> None:
    args = {"objective": "o", "outputSchema": schema}
    given = found({"id": "odd", "tool": "agent", "args": args}, noted("$odd.a[0].b", when="odd[?a == `1`].b"))
    assert all(problem.code == "INVALID_ARGS" for problem in errors(given))


@pytest.mark.parametrize(
    ("given", "codes"),
    [({}, ["ALWAYS_NULL"]), ({"choices": [1, 2]}, []), ({"schema": {"type": "object"}}, []), ({"schema": "$any"}, [])],
)
def test_an_answer_is_a_text_unless_choices_or_a_schema_say_otherwise(given: Data, codes: list[str]) -> None:
    question = {"id": "who", "tool": "ask", "args": {"question": "q", **given}}
    note = {"id": "n", "tool": "note", "args": {"text": "$who.name"}}
    assert [each.code for each in found(question, note)] == codes


@pytest.mark.uses("children")
def test_an_input_of_an_inline_plan_that_is_a_value_of_the_parent_may_be_of_any_type() -> None:
    steps = [
        {"id": name, "tool": "note", "args": {"text": f"{{{{inputs.{name}.name}}}}"}} for name in ("made", "written")
    ]
    inline = {"id": "sub", "tool": "plan", "args": {"steps": steps, "inputs": {"made": "$any", "written": "text"}}}
    assert [(each.code, each.field) for each in found(inline, language=OF_CHILDREN)] == [
        ("ALWAYS_NULL", "args.steps.written.args.text"),
    ]  # fmt: skip
