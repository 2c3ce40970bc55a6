"""Python code is parsed by several threads at once: steps ask which files a program writes while others do."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator

import pytest

from plansurvive.plans.expressions.python_code import parsed

DEEP = "x = " + "+".join(f"f({number}, [{number}, (a, b)])" for number in range(400))


class Parses:
    """Garbage that parses when it is collected: in the middle of whatever is being parsed then."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        ast.parse("x = f(1)")


@pytest.fixture
def often() -> Iterator[None]:
    """The collector runs every few objects."""
    before = gc.get_threshold()
    gc.set_threshold(50)
    yield
    gc.set_threshold(*before)


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("depth", [0, 7, 30])
def test_code_is_parsed_whatever_is_parsed_meanwhile(depth: int) -> None:
    for _ in range(3):
        Parses()
    found = _below(depth)
    assert ast.dump(found) == ast.dump(ast.parse(DEEP))


@pytest.mark.parametrize("code", ["x = (", "x = '\0'"])
def test_what_is_no_python_is_refused_as_ever(code: str) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        parsed(code)


def _below(depth: int) -> ast.Module:
    return parsed(DEEP) if depth == 0 else _below(depth - 1)
