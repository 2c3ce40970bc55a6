"""Quoting in one pass decides exactly what the quadratic version decided, on texts made of what either looks for."""

from __future__ import annotations

import random
import warnings
from types import ModuleType
from typing import Any

import pytest

from plansurvive.plans.errors import BadReference
from plansurvive.plans.expressions import quoting
from tests.nightly import sampled
from tests.plans.expressions import quadratic_quoting

WORDS = [
    *("sh", "bash", "python", "python3.1", "python3.", "perl", "node", "/bin/sh", "a/b/sh", "x/python2", "python-c"),
    *("-c", "-e", "-xc", "-xcc", "--c", "-c-", "-r ", "-n", "-s", "- ", "==", "0", "c", "e", "r", "ec", "v", "x", "_"),
    *(" ", "  ", "\n", "\t", "\x1c", "\u2003", "|", ";", "&", "(", ")", "{", "}", "/", "a", "é", "٣", "env "),
    *("case ", "case\n", " in ", "\nin\t", "in", "eval ", "ssh ", "su ", "then", "do ", "else\t", "trap ", "let "),
    *("watch ", "parallel ", "declare ", "awk ", "sed ", "mawk\n", "source ", ". ", "|sh", "| sh -s", "|a/sh;"),
    *("'", '"', "\\", "$", "`", "${", "$(", "$((", "((", "[[", "[[ ", "<<", "<", "#", "$'", "$["),
]
INSERTION = ""
PYTHON_WORDS = [
    *("x", "=", " ", "\n", "(", ")", "[", "]", "{", "}", ",", "'", '"', "f'", "f'{", "}'", "'''", "#", ":", ".", "1"),
    *("_inserted_value_", "_inserted_value_0_", "_inserted", "_value_", "0_", "lambda", "if", "else", "for", "in"),
]


def made(words: list[str], chance: random.Random) -> list[str]:
    """The literal texts around insertions: a random text of these words."""
    parts = chance.choices([*words, INSERTION], [1] * len(words) + [len(words) // 6], k=chance.randint(1, 14))
    literals = [""]
    for part in [*parts, INSERTION]:
        if part == INSERTION:
            literals.append("")
        else:
            literals[-1] += part
    return literals


def verdict(module: ModuleType, language: str, literals: list[str], values: list[Any]) -> str:
    """The text with its values, or why they are refused."""
    try:
        return str(getattr(module, f"join_{language}")(literals, values))
    except BadReference as error:
        return f"refused: {error.message}"


@pytest.mark.parametrize("seed", sampled(range(40), 4))
def test_each_command_gets_the_verdict_and_the_text_of_the_quadratic_version(seed: int) -> None:
    chance, accepted = random.Random(seed), 0
    for _ in range(1_500):
        literals = made(WORDS, chance)
        values = [chance.choice(["x", "a'b", 'q"$`', "-c", "\0"[: chance.random() < 0.1]]) for _ in literals[1:]]
        found = verdict(quoting, "shell", literals, values)
        assert found == verdict(quadratic_quoting, "shell", literals, values), literals
        accepted += not found.startswith("refused")
    assert 300 < accepted < 1_200  # both verdicts were compared


@pytest.mark.parametrize("seed", sampled(range(20), 2))
def test_each_python_text_gets_the_verdict_and_the_text_of_the_quadratic_version(seed: int) -> None:
    chance, accepted = random.Random(seed), 0
    warnings.simplefilter("ignore")  # of the Python parser, about the code
    for _ in range(1_000):
        literals = made(PYTHON_WORDS, chance)
        if chance.random() < 0.5:
            literals = [text.replace("'", "").replace('"', "") + "," for text in literals]
        values: list[Any] = [chance.choice(["x", "_inserted_value_1_", None, 1]) for _ in literals[1:]]
        found = verdict(quoting, "python", literals, values)
        assert found == verdict(quadratic_quoting, "python", literals, values), literals
        accepted += not found.startswith("refused")
    assert accepted > 20


def test_control_a_changed_rule_is_noticed() -> None:
    changed = ModuleType("changed")
    changed.join_shell = lambda literals, values: quoting.join_shell(  # type: ignore[attr-defined]
        [text.replace("-r", "-n") for text in literals], values
    )
    chance = random.Random(1)
    cases = [made(WORDS, chance) for _ in range(2_500)]
    assert any(
        verdict(changed, "shell", each, ["x"] * (len(each) - 1))
        != verdict(quadratic_quoting, "shell", each, ["x"] * (len(each) - 1))
        for each in cases
    )
