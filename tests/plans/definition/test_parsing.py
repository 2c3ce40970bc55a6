"""From text to a plan: what JSON readers quietly accept is refused, and every fault of shape has its code and place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from plansurvive.plans.definition.checks.validation import problems
from plansurvive.plans.definition.parsing import MAX_BYTES, Unreadable, parse_json, read_plan, sound_part
from plansurvive.plans.model import Plan, Problem
from tests.plans.building import TOOLS

VALID: dict[str, Any] = {
    "id": "demo",
    "taskId": "task-1",
    "version": 2,
    "title": "A plan",
    "workspace": "/data",
    "inputs": {"name": {"type": "string", "description": "whose", "default": "ann"}},
    "maxParallel": 4,
    "defaults": {"retry": {"attempts": 2, "delay": 0.5, "factor": 1}, "timeout": 30, "critical": True},
    "steps": [
        {"id": "step_1", "tool": "read_file", "args": {"path": "a.txt"}, "order": 0},
        {
            "id": "step_2",
            "tool": "write_file",
            "args": {"path": "{{inputs.name}}.txt", "content": "$step_1"},
            "description": "copy",
            "dependsOn": ["step_1"],
            "critical": False,
            "requiresApproval": True,
            "approval": {"timeout": 60, "onTimeout": "approve"},
            "retry": {"attempts": 1},
            "timeout": 5,
            "when": "step_1 != 'x'",
            "notes": "watch it",
        },
    ],
    "estimatedDuration": 12.5,
    "createdAt": "2026-01-20T10:30:00Z",
}


def plan_with(**fields: Any) -> dict[str, Any]:
    """A plan of one step with these fields instead of its own; a field of `...` is left out."""
    one = {"id": "a", "tool": "read_file", "args": {"path": "x"}} | fields
    return {"steps": [{name: value for name, value in one.items() if value is not ...}]}


def unreadable(text: str | bytes) -> str:
    """The code with which a text is refused."""
    with pytest.raises(Unreadable) as caught:
        parse_json(text)
    assert len(caught.value.problem.message) > 15
    return caught.value.problem.code


def found(data: Any) -> list[Problem]:
    """Every problem of a plan's data."""
    plan = read_plan(data)
    return plan if isinstance(plan, list) else problems(plan, TOOLS)


TEXTS = [
    (1, "", "PLAN_NOT_JSON"),
    (2, "  \n ", "PLAN_NOT_JSON"),
    (3, "First I would read the file.", "PLAN_NOT_JSON"),
    (5, '{"steps": []} {"steps": []}', "PLAN_NOT_JSON"),
    (6, "{'steps': []}", "PLAN_NOT_JSON"),
    (7, '{"steps": [],}', "PLAN_NOT_JSON"),
    (8, "\ufeff", "PLAN_NOT_JSON"),
    (8, b"\xef\xbb\xbf", "PLAN_NOT_JSON"),
    (9, b'{"steps": "\xff\xfe"}', "PLAN_NOT_JSON"),
    (10, '{"version": ' + "9" * 5_000 + "}", "PLAN_NOT_JSON"),
    (11, '{"title": "' + "x" * MAX_BYTES + '"}', "PLAN_TOO_LARGE"),
    (13, "[" * 100_000 + "]" * 100_000, "PLAN_TOO_DEEP"),
    (13, '{"a":' * 100 + "1" + "}" * 100, "PLAN_TOO_DEEP"),
    (15, '{"version": NaN}', "PLAN_NOT_FINITE"),
    (16, '{"version": -Infinity}', "PLAN_NOT_FINITE"),
    (17, '{"version": 1e999}', "PLAN_NOT_FINITE"),
    (18, r'{"title": "\ud800"}', "PLAN_BAD_TEXT"),
    (18, r'{"\udfff": 1}', "PLAN_BAD_TEXT"),
    (33, '{"steps": [], "steps": [{"id": "a"}]}', "PLAN_DUPLICATE_KEY"),
    (33, '{"steps": [{"id": "a", "id": "b"}]}', "PLAN_DUPLICATE_KEY"),
]


@pytest.mark.parametrize(("text", "code"), [each[1:] for each in TEXTS], ids=[str(each[0]) for each in TEXTS])
def test_a_text_that_is_no_plan_is_refused(text: str | bytes, code: str) -> None:
    assert unreadable(text) == code


@pytest.mark.parametrize("tenth", range(10))
def test_a_truncated_plan_is_no_json(tenth: int) -> None:
    text = json.dumps(VALID)
    assert unreadable(text[: len(text) * tenth // 10]) == "PLAN_NOT_JSON"


def test_a_syntax_error_names_its_line() -> None:
    with pytest.raises(Unreadable, match="line 3, column"):
        parse_json('{\n"steps": [\n  oops\n]}')


def test_an_unfinished_text_of_many_quotes_is_refused_in_linear_time() -> None:
    assert unreadable('"' + '\\"' * 1_000_000) == "PLAN_NOT_JSON"


def test_one_code_fence_around_a_plan_is_accepted() -> None:
    assert parse_json(f"```json\n{json.dumps(VALID)}\n```\n") == VALID


def test_brackets_inside_texts_are_no_nesting() -> None:
    assert parse_json(json.dumps(["[" * 1_000 + '\\"'])) == ["[" * 1_000 + '\\"']


def test_a_byte_order_mark_before_a_plan_is_ignored() -> None:
    assert parse_json(b"\xef\xbb\xbf" + json.dumps(VALID).encode()) == VALID


A = plan_with()["steps"][0]
SHAPES: list[tuple[int, Any, str, str | None, str | None, str]] = [
    (12, {"steps": [A] * 20_001}, "PLAN_TOO_LARGE", None, "steps", "20000"),
    (14, plan_with(args={"path": "x" * 70_000}), "PLAN_TOO_LARGE", "a", "args", "in a file"),
    (15, plan_with(args={"path": float("nan")}), "PLAN_NOT_FINITE", None, None, "finite"),
    (18, plan_with(args={"path": "\ud800"}), "PLAN_BAD_TEXT", None, None, "surrogate"),
    (19, plan_with(id="a\0"), "PLAN_BAD_TEXT", "a\0", "id", "letters"),
    (19, plan_with(args={"path": "a\0b"}), "PLAN_BAD_TEXT", "a", "args.path", "remove it"),
    (20, [A], "PLAN_SCHEMA", None, None, "an object with steps"),
    (20, "steps", "PLAN_SCHEMA", None, None, "an object with steps"),
    (20, None, "PLAN_SCHEMA", None, None, "an object with steps"),
    (21, {"title": "x"}, "PLAN_SCHEMA", None, "steps", "add it"),
    (22, {"steps": []}, "PLAN_SCHEMA", None, "steps", "add at least one"),
    (23, {"steps": None}, "PLAN_SCHEMA", None, "steps", "list"),
    (23, {"steps": [None]}, "PLAN_SCHEMA", "#1", "step", "should be"),
    (24, plan_with(dependson=[]), "PLAN_SCHEMA", "a", "dependson", "did you mean 'dependsOn'?"),
    (24, plan_with(retry={"atempts": 1}), "PLAN_SCHEMA", "a", "retry.atempts", "did you mean 'attempts'?"),
    (24, plan_with() | {"titel": "x"}, "PLAN_SCHEMA", None, "titel", "did you mean 'title'?"),
    (24, plan_with(zzz=1), "PLAN_SCHEMA", "a", "zzz", "known: id, tool"),
    (25, plan_with(id=5), "PLAN_SCHEMA", "#1", "id", "string; it is 5"),
    (26, plan_with(id=""), "PLAN_SCHEMA", "#1", "id", "write 1 to 128"),
    (26, plan_with(id=...), "PLAN_SCHEMA", "#1", "id", "add it"),
    *(
        (27, plan_with(id=bad), "PLAN_SCHEMA", bad[:128], "id", "write 1 to 128")
        for bad in ("a b", "a/b", "$a", "a" * 129)
    ),
    (27, plan_with(id="a\n"), "PLAN_SCHEMA", "a\n", "id", "write 1 to 128"),
    (
        28,
        plan_with(dependsOn="b"),
        "PLAN_SCHEMA",
        "a",
        "dependsOn",
        "such as `dependsOn: [STEP]`; it is 'b'",
    ),
    *((29, plan_with() | {"version": bad}, "PLAN_SCHEMA", None, "version", "it is") for bad in (0, -1, True, 1.5, "2")),
    (30, plan_with(status="completed"), "PLAN_SCHEMA", "a", "status", "remove it"),
    (30, plan_with(result={"ok": True}), "PLAN_SCHEMA", "a", "result", "remove it"),
    (
        31,
        plan_with() | {"estimatedDuration": -1},
        "PLAN_SCHEMA",
        None,
        "estimatedDuration",
        "greater than or equal to 0",
    ),
    (32, plan_with(description="x" * 1_000_000), "PLAN_SCHEMA", "a", "description", "10000"),
    (40, plan_with(dependsOn=[""]), "UNKNOWN_DEPENDENCY", "a", "dependsOn.0", "Unknown dependency: ''; name a step"),
    (46, plan_with(tool=None), "UNKNOWN_TOOL", "a", "tool", "Unknown tool: null; name a tool"),
    (46, plan_with(tool=...), "PLAN_SCHEMA", "a", "tool", "add it"),
]


@pytest.mark.parametrize(
    ("data", "code", "step_id", "field", "mend"), [each[1:] for each in SHAPES], ids=[str(each[0]) for each in SHAPES]
)
def test_a_fault_of_shape_has_code_place_and_mend(
    data: Any, code: str, step_id: str | None, field: str | None, mend: str
) -> None:
    [problem] = found(data)
    assert (problem.code, problem.step_id, problem.field) == (code, step_id, field)
    assert mend in problem.message
    assert len(problem.text) < 700


def test_all_faults_of_shape_are_told_at_once() -> None:
    data = {"version": 0, "steps": [plan_with(id="")["steps"][0], {"id": "b"}, plan_with(timeout=-1)["steps"][0]]}
    assert [(problem.step_id, problem.field) for problem in found(data)] == [
        *((None, "version"), ("#1", "id"), ("b", "tool"), ("a", "timeout"))
    ]


def test_a_large_text_that_is_not_ascii_counts_as_the_bytes_it_has() -> None:
    assert found(plan_with(tool="note", args={"text": "я" * 32_000})) == []


def test_snake_case_is_read_and_camel_case_written() -> None:
    snake = plan_with(depends_on=[], requires_approval=True, approval={"on_timeout": "fail"}) | {"max_parallel": 2}
    plan = read_plan(snake)
    assert isinstance(plan, Plan)
    written = plan.model_dump(mode="json", exclude_none=True)
    assert written["maxParallel"] == 2
    assert {"dependsOn", "requiresApproval"} <= written["steps"][0].keys()
    assert written["steps"][0]["approval"]["onTimeout"] == "fail"


def test_a_plan_goes_to_json_and_back_unchanged() -> None:
    plan = read_plan(VALID)
    assert isinstance(plan, Plan)
    assert read_plan(parse_json(plan.model_dump_json(exclude_none=True))) == plan
    assert read_plan(json.loads(plan.model_dump_json())) == plan
    assert found(VALID) == []


SCHEMA = Draft202012Validator(Plan.model_json_schema(by_alias=True))


def test_the_published_schema_accepts_valid_plans() -> None:
    for plan in (VALID, plan_with(), plan_with(dependsOn=["b"], when="b", critical=True)):
        assert not list(SCHEMA.iter_errors(plan))


CONSTRUCTS: dict[str, Any] = {
    "steps": [
        {"id": "b", "steps": [A], "forEach": "$x", "output": "a", "repeat": {"until": "a"}, "finally": [A]},
        {
            "id": "c",
            "steps": [A],
            "forEach": {"items": ["x"], "as": "f", "key": "@", "tolerate": "10%", "maxParallel": 2},
        },
        {"id": "d", "tool": "note", "forEach": ["x", 1], "catch": [{"codes": ["EXISTS"], "steps": [A]}]},
        {"id": "s", "switch": [{"when": "a", "steps": [A]}, {"steps": [A]}]},
        {"id": "u", "tool": "note", "undo": {"tool": "note", "args": {}}},
        {"id": "v", "tool": "note", "undo": {"steps": [A]}},
    ],
    "finally": [A],
    "rollback": True,
    "owns": ["out/*"],
    "outputs": {"x": "b"},
}


def test_the_published_schema_accepts_every_construct_and_describes_it() -> None:
    assert list(SCHEMA.iter_errors(CONSTRUCTS)) == []
    assert isinstance(read_plan(CONSTRUCTS), Plan)
    described = [Plan.model_json_schema()["$defs"][name] for name in ("ForEach", "Repeat", "Case", "Catch", "Undo")]
    assert all(field.get("description") for each in described for field in each["properties"].values())


@pytest.mark.parametrize(
    "step",
    [
        {"id": "x"},
        {"id": "x", "steps": []},
        {"id": "x", "tool": "t", "forEach": 5},
        {"id": "x", "tool": "t", "forEach": {"item": []}},
        {"id": "x", "tool": "t", "repeat": {"limit": 3}},
        {"id": "x", "tool": "t", "catch": [{}]},
        {"id": "x", "steps": [{"id": "y"}]},
    ],
)
def test_the_published_schema_refuses_a_construct_of_another_shape(step: dict[str, Any]) -> None:
    assert list(SCHEMA.iter_errors({"steps": [step]}))
    assert isinstance(read_plan({"steps": [step]}), list)


REFUSED_BY_SCHEMA = [data for number, data, *_ in SHAPES if 20 <= number <= 40 and data != plan_with(id="a\n")]


@pytest.mark.parametrize("data", [*REFUSED_BY_SCHEMA, plan_with(timeout=0), plan_with(retry={"attempts": 0})])
def test_the_published_schema_refuses_what_has_another_shape(data: Any) -> None:
    assert list(SCHEMA.iter_errors(data))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["$a", "{{b.c}}", "$"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@pytest.mark.in_turn
@given(data=st.data())
def test_a_mutated_plan_never_raises_it_has_problems_or_is_a_plan(data: st.DataObject) -> None:
    plan: Any = json.loads(json.dumps(VALID))
    for _ in range(data.draw(st.integers(1, 4))):
        mutate(plan, data)
    sound_part(plan)
    for problem in found(plan):
        assert problem.code.isupper()
        assert problem.message


def mutate(plan: Any, data: st.DataObject) -> None:
    """Replace, remove, repeat or add something at a random place."""
    at = plan
    while isinstance(at, dict | list) and at:
        keys: list[Any] = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(at[key], dict | list) and at[key] and data.draw(st.integers(0, 3)):
            at = at[key]
            continue
        what = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if what == "replace":
            at[key] = data.draw(JSON)
        elif what == "remove":
            del at[key]
        elif isinstance(at, dict):
            at[data.draw(st.sampled_from(["status", "depends_on", "dependsOn", "x", "when", "args"]))] = data.draw(JSON)
        else:
            at.append(data.draw(JSON | st.sampled_from(VALID["steps"])))
        return


def test_labels_are_names_with_a_line_of_text_each() -> None:
    labels = {"team": "billing", "cost.center_1": "4711 / Köln"}
    plan = read_plan({"labels": labels, "steps": VALID["steps"]})
    assert isinstance(plan, Plan)
    assert plan.labels == labels


@pytest.mark.parametrize(
    "labels",
    [{"": "x"}, {"a b": "x"}, {"team": ""}, {"team": "x\ny"}, {"team": 5}, {"team": "x" * 201}, {"n" * 64: "x"},
     {f"n{number}": "x" for number in range(21)}, ["team"], "team"],
)  # fmt: skip
def test_other_labels_are_refused(labels: Any) -> None:
    found = read_plan({"labels": labels, "steps": VALID["steps"]})
    assert isinstance(found, list)
    assert all(each.code == "PLAN_SCHEMA" and (each.field or "").startswith("labels") for each in found)
