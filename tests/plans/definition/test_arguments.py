"""A tool's schema applied to arguments: each fault at its field, in a stable order, with its mend."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.definition.arguments import _are_plain, _errors, argument_problems
from plansurvive.plans.model import ToolSpec
from tests.plans.building import TOOLS, spec


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("read_file", {"path": "x"}, []),
        ("read_file", {"path": "x", "limit": 3}, []),
        ("read_file", {"path": "x", "limit": True}, [("args.limit", "should be a whole number; it is true")]),
        ("read_file", {"path": "x", "limit": None}, [("args.limit", "should be a whole number; it is null")]),
        ("read_file", {"path": ""}, [("args.path", "'' should be non-empty")]),
        ("read_file", {"paht": "x"}, [("args.path", "needs 'path'; add it"), ("args.paht", "did you mean 'path'?")]),
        ("write_file", {}, [("args.content", "add it"), ("args.path", "add it")]),
        (
            "run_command",
            {"command": "x", "timeout": 0},
            [("args.timeout", "should be a number above 0")],
        ),
        ("run_command", {"command": "x", "env": {"A": "$b"}}, []),
        (
            "http_request",
            {"url": "x", "method": "get"},
            [("args.method", "should be 'GET', 'HEAD' or 'POST'; it is 'get'; did you mean 'GET'?")],
        ),
        ("http_request", {"url": "x", "method": "{{m}}"}, []),
        ("http_request", {"url": ["{{m}}"]}, [("args.url", "should be a string; it is")]),
        ("sleep", {"seconds": "$n"}, []),
        ("sleep", {"seconds": "{{n}}"}, [("args.seconds", "should be a number; it is")]),
        ("sleep", {"seconds": "$5"}, [("args.seconds", "should be a number; it is '$5'")]),
        ("sleep", {"seconds": "$$n"}, [("args.seconds", "should be a number; it is '$$n'")]),
    ],
)
def test_arguments_are_judged_field_by_field(tool: str, args: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    found = sorted(argument_problems(TOOLS[tool], args))
    assert [field for field, _ in found] == sorted(field for field, _ in expected)
    for (_, text), (_, mend) in zip(found, sorted(expected), strict=True):
        assert mend in text


def test_a_number_of_a_step_called_so_is_a_reference() -> None:
    assert argument_problems(TOOLS["sleep"], {"seconds": "$5"}, {"5"}) == []


def test_a_fault_inside_a_value_names_its_place_in_it() -> None:
    tool = spec("pick", {"rows": {"type": "array", "items": {"type": "object", "required": ["id"]}}})
    assert argument_problems(tool, {"rows": [{"id": 1}, {}, "$x"]}) == [("args.rows.1.id", "pick needs 'id'; add it")]


def test_a_long_value_is_cut_in_the_sentence() -> None:
    [(_, text)] = argument_problems(TOOLS["sleep"], {"seconds": ["x" * 1_000_000]})
    assert len(text) < 100


@pytest.mark.parametrize(
    ("args", "asks"),
    [({"url": "x"}, False), ({"url": "x", "method": "HEAD"}, False), ({"url": "x", "method": "POST"}, True)],
)
def test_a_tool_asks_unless_its_arguments_are_exempt(args: dict[str, Any], asks: bool) -> None:
    assert TOOLS["http_request"].asks_by_default(args) is asks


def test_a_tool_without_arguments_says_that_it_takes_nothing() -> None:
    tool: ToolSpec = spec("ping")
    assert argument_problems(tool, {"x": 1}) == [("args.x", "ping has no argument 'x'; it takes nothing")]


SAMPLES: tuple[Any, ...] = ("x", "", 3, -1, 0, True, False, None, 1.0, 2.5, [], ["x"], {}, {"a": 1}, "$s", 10**12)
FIELDS: tuple[dict[str, Any], ...] = (
    *({"type": kind} for kind in ("string", "integer", "number", "boolean", "null", "array", "object")),
    *({"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0, "default": 1}, {}, {"enum": ["x", 3]}),
    *(
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": ["string", "null"]},
        {"type": "string", "default": ""},
    ),
)


@pytest.mark.parametrize("field", FIELDS, ids=str)
@pytest.mark.parametrize("closed", [True, False])
def test_arguments_judged_by_their_types_are_judged_as_the_schema_says(field: dict[str, Any], closed: bool) -> None:
    properties = {"a": field, "b": {"type": "string", "description": "A text.", "default": "x"}}
    schema = {"type": "object", "properties": properties, "required": ["a"], "additionalProperties": not closed}
    made = ToolSpec(name="t", description="d", args_schema=schema)
    plain = set()
    for value in SAMPLES:
        for args in ({"a": value}, {"a": value, "b": "y"}, {"a": value, "b": 1}, {"b": "y"}, {"a": value, "c": 1}):
            said = not list(made.validator.iter_errors(args))
            assert (not _errors(made, args)) is said, args
            plain.add(_are_plain(made, args))
    assert True not in plain or field.keys() <= {"type", "default"}
