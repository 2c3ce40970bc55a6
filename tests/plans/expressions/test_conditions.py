"""Conditions: JMESPath's own truth over finished steps and inputs, bounded, with no way out of it (FAULTS, T17)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.conditions import compiled, holds, roots_of, search

VALUES = {"a": {"n": 5, "ok": True, "rows": [1, 2], "none": None}, "b": "text", "zero": 0, "inputs": {"go": False}}


@pytest.mark.parametrize(
    "expression",
    [
        "a",
        "a.ok",
        "a.n > `3`",
        "zero",
        "zero == `0`",
        "length(a.rows) == `2`",
        "!(inputs.go)",
        "b == 'text'",
        "a.ok && b",
    ],
)
def test_a_condition_holds(expression: str) -> None:
    assert holds(expression, VALUES)


@pytest.mark.parametrize(
    "expression", ["inputs.go", "a.none", "a.gone", "''", "`[]`", "`{}`", "a.rows[5:]", "b == 'x'", "gone"]
)
def test_null_false_and_what_is_empty_do_not_hold(expression: str) -> None:
    assert not holds(expression, VALUES)


@pytest.mark.parametrize(
    ("expression", "roots"),
    [
        ("a", ["a"]),
        ("a.b.c && d[0].e || !f", ["a", "d", "f"]),
        ("contains(a.x, b.y)", ["a", "b"]),
        ("a.rows[?name == 'x'].age", ["a"]),
        ("a | rows[0]", ["a"]),
        ("sort_by(a.rows, &age)[0]", ["a"]),
        ("[a, b.c]", ["a", "b"]),
        ("{x: a, y: b.c}", ["a", "b"]),
        ("a.*.x", ["a"]),
        ("a[*].b[]", ["a"]),
        ("a[1:2]", ["a"]),
        ('"odd-id".x', ["odd-id"]),
        ("`1` == a", ["a"]),
        ("a == a", ["a"]),
        ("@.a", ["@"]),
        ("*.x", ["@"]),
        ("", []),
        (None, []),
    ],
)
def test_the_roots_of_an_expression_are_what_it_takes_from_outside(expression: str | None, roots: list[str]) -> None:
    assert roots_of(expression) == roots


HOSTILE = [
    *(
        "__import__('os')",
        "exec('1')",
        "open('/etc/passwd')",
        "a.__class__.__init__()",
        "eval(b)",
        "().__class__",
        "a;b",
    ),
    *("lambda: 1", "a if b else c", "a = 1", "$(touch x)", "{{a}}", "${a}", "a..b", "[", "]", "(a", "a)", "&"),
    *("a[", "a[?", "a[?b", "'", '"', "`", "\\", "\0", "\ud800", "a\nb", "((((", "a &&", "|| a", "!", "", " ", "@@"),
    *("!" * 100 + "a", "(" * 200 + "a" + ")" * 200, "[" * 300, "a[" * 200, "{a:" * 200 + "b" + "}" * 200, "x" * 1_001),
    *("a||" * 330 + "a", "not_null(" * 80 + "a" + ")" * 80),
]


@pytest.mark.parametrize("expression", HOSTILE)
def test_a_hostile_expression_is_refused(expression: str) -> None:
    with pytest.raises(BadExpression) as caught:
        compiled(expression)
    assert caught.value.code == "BAD_EXPRESSION"
    assert 10 < len(caught.value.message) < 700


@pytest.mark.parametrize(
    "expression", ["abs(b)", "a < b.x.y.z || max(b)", "sort(a.rows[0])", "a.rows[::0]", "join(a, b)"]
)
def test_an_expression_that_does_not_fit_its_values_is_refused_when_applied(expression: str) -> None:
    with pytest.raises(BadExpression, match="cannot be applied"):
        search(expression, VALUES)


@given(st.lists(st.sampled_from([*"ab.[]*?&|!(){}`'\"@:,0 <=>", "length(", "&&", "`1`", "'x'"]), max_size=15))
def test_any_text_is_an_expression_or_is_refused(parts: list[str]) -> None:
    try:
        roots_of("".join(parts))
        holds("".join(parts), VALUES)
    except BadExpression:
        pass
