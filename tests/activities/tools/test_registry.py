"""Which tools there are, and how one's own are added."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plansurvive.activities.attempt.run import tool_activity
from plansurvive.activities.tools.registry import builtin_tools, load_tools
from plansurvive.plans.errors import PlanError
from tests.activities.attempts import Attempts

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "tools" / "word_count.py")
TOOL = '''
from plansurvive.activities.tools.tool import tool

@tool
def {name}() -> str:
    """Say hello."""
    return "hello"
'''


def module(folder: Path, text: str, name: str = "my_tools.py") -> str:
    """A file with this program."""
    (folder / name).write_text(text)
    return str(folder / name)


async def test_the_example_tool_works(attempts: Attempts) -> None:
    tools = load_tools([EXAMPLE])
    assert set(tools) - set(builtin_tools()) == {"word_count"}
    (attempts.workspace / "x").write_text("To be or not to be")
    result = await attempts.run(tools["word_count"], path="x", mostCommon=2)
    assert result.value == {"words": 6, "mostCommon": [["to", 2], ["be", 2]]}
    assert list(result.read) == ["x"]
    assert await attempts.code(tools["word_count"], path="x", mostCommon=-1) == "INVALID_ARGS"


def test_a_module_may_be_named_as_python_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module(tmp_path, TOOL.format(name="greet"), "greeting_tools.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_tools(["greeting_tools"])["greet"]() == "hello"
    del sys.modules["greeting_tools"]


def test_the_same_module_twice_is_no_clash(tmp_path: Path) -> None:
    path = module(tmp_path, "from plansurvive.activities.tools.files import read_file\n" + TOOL.format(name="greet"))
    assert set(load_tools([path, path])) == {*builtin_tools(), "greet"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "contains no tools"),
        ("import no_such_module", "No module named 'no_such_module'; install what it imports beside"),
        ("raise SystemExit(3)", "SystemExit"),
        ("def f(:", "SyntaxError"),
        (TOOL.format(name="read_file"), "another tool already has this name"),
        (TOOL.format(name="check_plan"), "which is a reserved name"),
        (TOOL.format(name="ask"), "which is a reserved name"),
        (TOOL.format(name="notify"), "which is a reserved name"),
        (TOOL.format(name="list_items"), "which is a reserved name"),
        (TOOL.format(name="greet").replace("()", "(x: int)", 1), "does not describe 'x'"),
    ],
)
def test_a_module_that_cannot_be_used_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = module(tmp_path, text)
    with pytest.raises(PlanError) as caught:
        load_tools([path])
    assert caught.value.code == "BAD_SETTING:PLANS_TOOLS"
    assert path in caught.value.message
    assert words in caught.value.message


@pytest.mark.parametrize("name", ["no_such_module", "no/such/file.py", "", ".relative"])
def test_a_module_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(PlanError, match="PLANS_TOOLS") as caught:
        load_tools([name])
    assert name in caught.value.message


async def test_sleep_is_described_and_never_an_activity(attempts: Attempts) -> None:
    assert builtin_tools()["sleep"].spec.durable
    assert await attempts.code("sleep", seconds=1) == "BAD_TOOL"
    for seconds in (-1, 31_536_001, "5"):
        assert await attempts.code("sleep", seconds=seconds) == "INVALID_ARGS"


def test_every_tool_is_an_activity_under_its_own_name(attempts: Attempts) -> None:
    for name, tool in builtin_tools().items():
        definition = getattr(tool_activity(tool, attempts.values, attempts.effects), "__temporal_activity_definition")
        assert definition.name == name
