"""The tables of docs/sources.md: every statement of the sources has tests that exist, or says why it has none."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "sources.md"
COUNTS = {"000-": 21, "001-": 21, "002-": 24, "003-": 20, "004-": 32, "C": 10}
"""Number of statements by source; C: the project's own card."""
_ROW = re.compile(r"^\| (?P<number>\d{3}-\d+|C\d+) \| (?P<statement>[^|]+) \| (?P<tests>[^|]*) \|$", re.MULTILINE)
_TEST = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<name>test_\w+)`")


def rows(text: str) -> dict[str, str]:
    """The last column of the table, by number of the statement."""
    return {row["number"]: row["tests"] for row in _ROW.finditer(text)}


def faults(text: str, counts: dict[str, int]) -> list[str]:
    """What is wrong with the table: statements left out, tests that do not exist, and rows without either."""
    found = rows(text)
    expected = [f"{source}{number}" for source, count in counts.items() for number in range(1, count + 1)]
    problems = [f"{number} is missing" for number in expected if number not in found]
    problems += [f"{number} is not a statement" for number in found if number not in expected]
    for number, cell in found.items():
        named = [(test["file"], test["name"]) for test in _TEST.finditer(cell)]
        problems += [f"{number}: there is no {file}::{name}" for file, name in named if name not in _tests_of(file)]
        if not named and not cell.startswith("none: "):
            problems.append(f"{number} has neither a test nor a reason")
    return problems


@cache
def _tests_of(file: str) -> frozenset[str]:
    path = ROOT / "tests" / file
    if not path.is_file():
        return frozenset()
    nodes = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.slow
@pytest.mark.in_turn
def test_every_statement_has_its_tests() -> None:
    assert faults(PAGE.read_text(), COUNTS) == []


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ("", "000-1 is missing"),
        ("| 000-1 | A statement |  |", "000-1 has neither a test nor a reason"),
        ("| 000-1 | A statement | `test_sources.py::test_gone` |", "000-1: there is no test_sources.py::test_gone"),
        ("| 000-1 | A | none: later |\n| 000-2 | B | none: later |", "000-2 is not a statement"),
    ],
)
def test_a_fault_of_the_table_is_seen(table: str, fault: str) -> None:
    assert faults(table, {"000-": 1}) == [fault]
