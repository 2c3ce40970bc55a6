"""A tool is described by its function alone, and says clearly what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.activities.tools.tool import ToolContext, tool
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.errors import PlanError
from plansurvive.plans.file_stamps import stamp_of
from plansurvive.plans.model import Retry
from tests.activities.attempts import Attempts


class Pair(BaseModel):
    """Two numbers."""

    left: int
    right: int = 2


@tool(approval="always", effect="pure", timeout=5.0, retry=Retry(attempts=1), name="sum_up")
def add(
    pair: Pair, context: ToolContext, is_negative: bool = False, mode: Literal["exact", "rough"] = "exact"
) -> dict[str, Any]:
    """Add numbers.

    In two paragraphs.

    Args:
        pair: What to add,
            on two lines.
        is_negative: Whether to turn the sign.
        mode: How well.

    Returns:
        {sum, key}.
    """
    return {"sum": (pair.left + pair.right) * (-1 if is_negative else 1), "key": context.call.key}


def test_a_spec_comes_from_signature_and_docstring() -> None:
    spec = add.spec
    assert (spec.name, spec.description, spec.value) == ("sum_up", "Add numbers.\n\nIn two paragraphs.", "{sum, key}.")
    assert (spec.approval, spec.effect, spec.timeout, spec.retry) == ("always", "pure", 5.0, Retry(attempts=1))
    assert list(spec.args_schema["properties"]) == ["pair", "isNegative", "mode"]
    assert spec.args_schema["required"] == ["pair"]
    assert spec.args_schema["additionalProperties"] is False
    assert spec.args_schema["properties"]["pair"]["description"] == "What to add, on two lines."


def test_the_built_in_specs_are_as_recorded() -> None:
    """What plans, people and models see; `plan tools --json` records it again after an intended change."""
    recorded = json.loads((Path(__file__).parent / "golden" / "tools.json").read_text(encoding="utf-8"))
    specs = {name: each.spec.model_dump(mode="json") for name, each in builtin_tools().items()}
    assert specs == {spec["name"]: spec for spec in recorded}


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        ("", ""),
        ("Returns: its name", "its name"),
        ("Returns:\n    The answer: a text,\n    or JSON.", "The answer: a text, or JSON."),
        ("Returns:\n    One.\n\n    Two.\n\nRaises:\n    ValueError: never.", "One.\n\nTwo."),
    ],
)
def test_the_value_is_what_stands_under_returns(returns: str, value: str) -> None:
    def greet(name: str) -> str:
        return name

    greet.__doc__ = f"Greet.\n\nArgs:\n    name (str): Whom: one name,\n        on two lines.\n\n{returns}"
    spec = tool(greet).spec
    assert (spec.description, spec.value) == ("Greet.", value)
    assert spec.args_schema["properties"]["name"]["description"] == "Whom: one name, on two lines."


def test_a_docstring_that_cannot_be_parsed_is_refused() -> None:
    def greet() -> str:
        return ""

    greet.__doc__ = "Greet.\n\nArgs:\n    nothing of that kind\n"
    with pytest.raises(PlanError, match="cannot be parsed") as raised:
        tool(greet)
    assert raised.value.code == "BAD_TOOL"


def test_every_schema_of_a_built_in_tool_is_valid_and_describes_every_argument() -> None:
    for name, each in builtin_tools().items():
        Draft202012Validator.check_schema(each.spec.args_schema)
        assert name == each.spec.name
        assert each.spec.description
        assert each.spec.value
        assert all(schema["description"] for schema in each.spec.args_schema["properties"].values())


def test_the_contract_names_these_tools_and_arguments() -> None:
    arguments = {name: list(each.spec.args_schema["properties"]) for name, each in builtin_tools().items()}
    assert arguments == {
        "read_file": ["path", "offset", "limit"],
        "read_json": ["path"],
        "write_file": ["path", "content"],
        "edit_file": ["path", "oldText", "newText"],
        "create_directory": ["path"],
        "list_directory": ["path"],
        "find_files": ["pattern", "path"],
        "delete_file": ["path"],
        "run_command": ["command", "cwd", "timeout", "env", "allowFailure", "network"],
        "run_python": ["code", "timeout", "allowFailure", "network"],
        "http_request": ["url", "method", "headers", "body", "timeout"],
        "sleep": ["seconds"],
        "ask": ["question", "choices", "schema", "default", "timeout", "onTimeout", "to"],
        "wait_for": ["event", "match", "timeout"],
        "agent": ["objective", "tools", "maxCalls", "maxTokens", "maxSeconds", "outputSchema"],
        "plan": ["file", "template", "steps", "inputs", "id"],
        "coding_agent": ["agent", "prompt", "session", "schema"],
    }


def test_the_contract_says_who_is_asked() -> None:
    asks = {name for name, each in builtin_tools().items() if each.spec.asks_by_default({})}
    assert asks == {"delete_file", "run_command", "run_python", "coding_agent"}
    http = builtin_tools()["http_request"].spec
    assert [method for method in ("GET", "HEAD", "POST", "DELETE") if http.asks_by_default({"method": method})] == [
        "POST",
        "DELETE",
    ]


def test_a_tool_is_still_a_function() -> None:
    @tool
    def double(number: int) -> int:
        """Double.

        Args:
            number: What to double.
        """
        return 2 * number

    assert double(3) == 6
    assert double(number=4) == 8


async def test_arguments_arrive_as_the_function_declares_them(attempts: Attempts) -> None:
    result = await attempts.but(step="s").run(add, pair={"left": 1}, isNegative=True)
    assert result.value == {"sum": -3, "key": "plan-p/s"}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "path"),
        ({"path": ["x"]}, "args.path"),
        ({"path": None}, "args.path"),
        ({"path": "x", "pth": "y"}, "pth"),
        ({"path": "x", "limit": "5"}, "args.limit"),
        ({"path": "x", "limit": -1}, "args.limit"),
        ({"path": "x", "limit": True}, "args.limit"),
        ({"path": "x", "offset": 1.5}, "args.offset"),
    ],
)
async def test_bad_arguments_are_named_and_not_tried_again(
    attempts: Attempts, args: dict[str, Any], words: str
) -> None:
    error = await attempts.error("read_file", **args)
    assert error.type == "INVALID_ARGS"
    assert error.non_retryable
    assert "Invalid args for read_file" in error.message
    assert words in error.message


@pytest.mark.parametrize("timeout", [0, -1, 1e9, "5", None, True])
async def test_a_timeout_has_bounds(attempts: Attempts, timeout: Any) -> None:
    for name, args in {"run_command": {"command": "true"}, "http_request": {"url": "http://127.0.0.1:1"}}.items():
        assert await attempts.code(name, timeout=timeout, **args) == "INVALID_ARGS"


def bad_tools() -> dict[str, Callable[..., object]]:
    """Functions that cannot be tools, by what their error must say."""

    def undocumented(path: str) -> None: ...

    def undescribed(path: str) -> None:
        """Do."""

    def untyped(path) -> None:  # type: ignore[no-untyped-def]
        """Do.

        Args:
            path: Where.
        """

    def misspelt(path: str) -> None:
        """Do.

        Args:
            path: Where.
            pth: Where.
        """

    def starred(*paths: str) -> None:
        """Do.

        Args:
            paths: Where.
        """

    def strange(path: Workspace) -> None:
        """Do.

        Args:
            path: Where.
        """

    return {
        "does not describe 'path'": undescribed,
        "has no type for 'path'": untyped,
        "describes 'pth'": misspelt,
        "named parameters": starred,
        "no JSON Schema": strange,
        "'bad_tools.<locals>.undocumented'": undocumented,
    }


@pytest.mark.parametrize("words", bad_tools())
def test_what_is_missing_is_said(words: str) -> None:
    with pytest.raises(PlanError, match="tool '") as caught:
        tool(bad_tools()[words])
    assert caught.value.code == "BAD_TOOL"
    assert words in caught.value.message


def test_a_name_must_be_one_and_a_rule_must_have_its_argument() -> None:
    def fine(limit: Annotated[int, Field(gt=0)]) -> None:
        """Do.

        Args:
            limit: How many.
        """

    with pytest.raises(PlanError, match="has the invalid name 'two words'"):
        tool(name="two words")(fine)
    with pytest.raises(PlanError, match="an option for 'command'"):
        tool(quoting={"command": "shell"})(fine)


def test_a_context_records_each_file_once_and_a_line_of_progress(attempts: Attempts, workspace: Path) -> None:
    context = ToolContext(attempts.call({}), Workspace(str(workspace)), attempts.effects)
    (workspace / "x").write_text("content")
    for path in ("a/../x", "./x", str(workspace / "x"), "y"):
        context.wrote(path)
    context.read("x")
    context.progress("\x1b[1mfirst\n " + "long " * 1_000)
    assert context.files_written == {"x": stamp_of(b"content"), "y": None}
    assert context.files_read == {"x": stamp_of(b"content")}
    assert context.line.isprintable()
    assert len(context.line) <= 200
