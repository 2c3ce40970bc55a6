"""Expressions have a budget: what doubles a value again and again is refused before the work is done."""

from __future__ import annotations

import random
import tracemalloc
import warnings
from itertools import pairwise
from typing import Any

import jmespath
import pytest
from jmespath.exceptions import JMESPathError

from plansurvive.plans.errors import BadExpression, BadReference
from plansurvive.plans.expressions.conditions import holds, search
from plansurvive.plans.expressions.evaluation import MAX_ARGS_CHARACTERS, TOO_COSTLY, UNITS, Budget
from plansurvive.plans.expressions.references import fill, fill_at
from tests.nightly import sampled

ROWS = [{"n": n, "s": f"row {n}", "t": [n]} for n in range(1_000)]
VALUES: dict[str, Any] = {"x": [1, 2], "rows": ROWS, "big": "x" * 100_000, "inputs": {"x": {"y": [1, 2]}}}
DOUBLED, FLAT = "|[@,@]" * 30, "|[@,@][]" * 30
BOMBS = [
    "inputs.x" + "|[@,@]" * 27 + "|length(to_string(@))",
    *(f"x{DOUBLED}|length(to_string(@))", f"x{DOUBLED}", f"x{FLAT}|length(@)", f"x{FLAT}|sum(@)", f"x{FLAT}|avg(@)"),
    *(f"[x{DOUBLED}, x{DOUBLED}]|@[0] == @[1]", f"[x{DOUBLED}, x{DOUBLED}]|@[0] != @[1]"),
    *(f"[x{DOUBLED}, x{DOUBLED}]|contains([@[0]], @[1])", "{a: x}" + "|{a: @, b: @}" * 30 + "|values(@)|to_string(@)"),
    *("big" + "|join('', [@, @])" * 30 + "|length(@)", "big" + "|join(@, ['', '', ''])" * 30 + "|length(@)"),
    *("rows" + "|[@,@][]" * 12 + "|sort_by(@, &s)", "rows" + "|[@,@][]" * 12 + "|max_by(@, &n)"),
    *("rows" + "|[@,@][]" * 9 + "|map(&to_string(@), @)|length(@)", "rows" + "|[@,@][]" * 9 + "|[?s == 'x']|length(@)"),
    "rows" + "|[@,@][]" * 9 + "|[::-1]" * 5 + "|length(@)",
    "rows" + "|[@,@][]" * 9 + "|reverse(@)" * 5 + "|length(@)",
    *("rows[*].[n,n,n]" + "|[@,@][]" * 9 + "|[][][]", "rows" + "|[@,@][]" * 9 + "|[*].*|length(@)"),
    "merge({a: x" + DOUBLED + "}, {b: @})|to_string(@)",
    "big" + "|[@,@,@,@][]" * 9 + "|[?@ < `\"x\"`]|length(@)",
    "[big]" + "|[@,@][]" * 9 + "|[?contains(@, 'y')]|length(@)",
    "[[x]]" + "|[@]" * 60 + "|[[[[[[[[[[[[[[[[[[[[@]]]]]]]]]]]]]]]]]]]]" * 20,
]  # fmt: skip


@pytest.mark.parametrize("expression", sampled(BOMBS, 8))
def test_an_expression_that_explodes_is_refused_with_a_code_and_a_way_out(expression: str) -> None:
    budget = Budget()
    with pytest.raises(BadExpression) as caught:
        search(expression, VALUES, budget)
    assert caught.value.code in (TOO_COSTLY, "BAD_EXPRESSION")
    assert len(caught.value.message) < 700
    assert budget.left > -2 * UNITS  # nothing was done that had not been counted before


def test_control_without_a_budget_each_pipe_doubles_the_work() -> None:
    def length(pipes: int) -> int:
        return int(jmespath.search("x" + "|[@,@]" * pipes + "|length(to_string(@))", VALUES))

    assert [length(n + 1) // length(n) for n in range(6, 12)] == [2] * 6
    budgets = [Budget() for _ in range(6)]
    for pipes, budget in enumerate(budgets, 6):
        search("x" + "|[@,@]" * pipes + "|length(to_string(@))", VALUES, budget)
    spent = [UNITS - budget.left for budget in budgets]
    assert all(1.7 < after / before < 2.1 for before, after in pairwise(spent))


def test_an_error_message_does_not_show_an_exploding_value() -> None:
    with pytest.raises(BadExpression, match="too large to show") as caught:
        search(f"abs(x{DOUBLED})", VALUES)
    assert caught.value.code == "BAD_EXPRESSION"
    with pytest.raises(BadExpression, match=r"invalid type for value: \[1, 2\], expected one of: \['number'\]"):
        search("abs(x)", VALUES)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("length(rows[?n >= `500`].s)", 500),
        ("sort_by(rows, &s)[0].n", 0),
        ("length(to_string(rows)) > `1000`", True),
        ("sum(rows[*].n)", 499_500),
        ("length(big)", 100_000),
        ("contains(big, 'xxx')", True),
        ("length(join(',', rows[*].s))", 7_889),
        ("rows == rows[:]", True),
    ],
)
def test_ordinary_work_on_a_thousand_rows_is_far_below_the_budget(expression: str, found: Any) -> None:
    budget = Budget()
    assert search(expression, VALUES, budget) == found
    assert UNITS - budget.left < UNITS // 5


def test_the_same_expression_costs_the_same_each_time() -> None:
    spent = []
    for _ in range(3):
        budget = Budget()
        search("rows[?n > `5`].[n, s] | [*][0] | sort(@) | to_string(@)", VALUES, budget)
        spent.append(budget.left)
    assert len(set(spent)) == 1


@pytest.mark.slow
def test_all_references_of_a_step_share_one_budget() -> None:
    piece = "{{rows|[*].n|length(@)}} "
    values = {"rows": ROWS}
    assert fill({"text": piece}, values, {}).args == {"text": "1000 "}
    with pytest.raises(BadReference) as caught:
        fill({"text": piece * 1_200}, values, {})
    assert caught.value.code == TOO_COSTLY
    assert fill_at({"text": piece * 1_200}, [["text"]], values, {}) == {
        "text": "1000 " * 1_200
    }  # not in a workflow task


def test_a_condition_that_costs_too_much_is_refused() -> None:
    with pytest.raises(BadExpression) as caught:
        holds(f"x{DOUBLED}|length(to_string(@))", VALUES)
    assert caught.value.code == TOO_COSTLY


EXPRESSIONS = [
    *("a", "b", "@", "a.b", "*", "a[*].b", "a[]", "@[0]", "@[1:]", "@[::-1]", "[@,a]", "{x:@,y:a}", "`1`", "`[1,2]`"),
    *("a == b", "@ != a", "a < b", "length(@)", "to_string(@)", "keys(@)", "values(@)", "sort(@)", "reverse(@)", "!a"),
    *("contains(@, a)", "contains(@, `1`)", "join('-', @)", "map(&a, @)", "sort_by(@, &a)", "max(@)", "min_by(@, &b)"),
    *("merge(@, {a:`1`})", "not_null(a, b)", "to_array(@)", "type(@)", "@[?a == b]", "@[?@]", "sum(@)", "to_number(@)"),
    *("starts_with(@, 'a')", "ends_with(@, a)", "a && b", "a || b", "avg(@)", "abs(@)", "flatten(@)", "@[*][]"),
]
SUBJECTS: list[Any] = [
    None,
    True,
    0,
    1.5,
    "",
    "ab",
    [],
    [1, 2],
    ["b", "a"],
    {},
    {"a": 1, "b": "x"},
    [{"a": 1}, {"b": 2}],
]


@pytest.mark.parametrize("seed", sampled(range(20), 2))
def test_within_the_budget_every_value_is_that_of_jmespath(seed: int) -> None:
    chance, same = random.Random(seed), 0
    warnings.simplefilter("ignore")
    for _ in range(1_500):
        expression = "|".join(chance.choices(EXPRESSIONS, k=chance.randint(1, 3)))
        value = chance.choice(
            [*SUBJECTS, [chance.choice(SUBJECTS), chance.choice(SUBJECTS)], {"a": chance.choice(SUBJECTS)}]
        )
        try:
            expected = jmespath.search(expression, value)
        except (JMESPathError, TypeError, ValueError, ArithmeticError):
            with pytest.raises(BadExpression):
                search(expression, value)
        else:
            found = search(expression, value)
            assert (found, type(found)) == (expected, type(expected)), (expression, value)
            same += 1
    assert same > 300


LARGE: dict[str, Any] = {"text": "x" * 8_000, "zeros": [0] * 4_000, "rows": ROWS}
MULTIPLIED: list[tuple[dict[str, Any], str | None]] = [
    ({"text": "{{text}}" * 7_000}, None),
    ({"text": "echo " + "{{text}} " * 7_000}, "shell"),
    ({"text": "x = [" + "{{text}}, " * 5_000 + "]"}, "python"),
    ({"text": "x = [" + "{{zeros}}, " * 5_000 + "]"}, "python"),
    ({"text": "{{rows}}" * 7_000}, None),
    ({"text": "{{zeros}}" * 7_000, "more": "$zeros"}, None),
    ({"text": ["$text"] * 7_000}, None),
    ({"text": {"deep": [["$zeros"]] * 7_000}}, None),
    ({f"a{n}": "{{text}}" * 100 for n in range(30)}, None),
]


@pytest.mark.parametrize(("args", "language"), MULTIPLIED)
def test_arguments_that_would_be_too_large_are_refused_before_they_are_built(
    args: dict[str, Any], language: str | None
) -> None:
    tracemalloc.start()
    with pytest.raises(BadReference, match="the arguments are longer than 16000000 characters") as caught:
        fill(args, LARGE, {"text": language} if language else {})  # type: ignore[dict-item]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.code == "ARGS_TOO_LARGE"
    assert peak < 4 * MAX_ARGS_CHARACTERS  # the largest of them would have 350 MB


def test_large_values_fill_what_fits() -> None:
    assert len(fill({"text": "{{text}}" * 1_900}, LARGE, {}).args["text"]) == 8_000 * 1_900
    assert fill({"list": ["$zeros"] * 3_000}, LARGE, {}).args["list"][2_999] is LARGE["zeros"]
    twice = fill_at({"text": "{{text}}" * 3_000}, [["text"]], LARGE, {})  # where large values are filled in: more
    assert len(twice["text"]) == 24_000_000
    with pytest.raises(BadReference, match="200000000 characters"):
        fill_at({"text": "{{text}}" * 26_000}, [["text"]], LARGE, {})
