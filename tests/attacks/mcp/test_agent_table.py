"""The table of attacks by agents says what is tried, and each attack has tests that exist."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.attacks.mcp.agent_table import ATTACKS, AgentAttack, written
from tests.attacks.table import DOCUMENT

TESTS = Path(__file__).parent.parent.parent


@cache
def named_in(file: str) -> frozenset[str]:
    nodes = ast.walk(ast.parse((TESTS / file).read_text()))
    return frozenset(each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.kind)
def test_each_attack_of_an_agent_is_tried(attack: AgentAttack) -> None:
    assert attack.tests
    for node in attack.tests:
        file, _, name = node.partition("::")
        assert name in named_in(file), node


def test_the_document_has_the_table_of_what_agents_try() -> None:
    text = DOCUMENT.read_text()
    assert written(text) == text, "run `python -m scripts.attack_table --agents`"
