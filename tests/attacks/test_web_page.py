"""The table of attacks on the web page says what is tried, and each attack has tests that exist."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.attacks.table import DOCUMENT
from tests.attacks.web_page import ATTACKS, FOLDER, WebAttack, written

ROOT = Path(__file__).parent.parent.parent


@cache
def named_in(file: str) -> frozenset[str]:
    nodes = ast.walk(ast.parse((ROOT / FOLDER / file).read_text()))
    return frozenset(each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.kind)
def test_each_attack_on_the_page_is_tried(attack: WebAttack) -> None:
    assert attack.tests
    for node in attack.tests:
        file, _, name = node.partition("::")
        assert name in named_in(file), node


def test_the_document_has_the_table_of_these_attacks() -> None:
    text = DOCUMENT.read_text()
    assert written(text) == text, "run `python -m scripts.attack_table --web`"
