"""What is said of expressions as other languages have them: the same one as JMESPath has it."""

from __future__ import annotations

import jmespath
import pytest

from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.conditions import compiled
from plansurvive.plans.expressions.slips import MAX_CHARACTERS, in_yaml, instead

MEANT = {
    "run-tests.exitCode == `0`": '"run-tests".exitCode == `0`',
    "!run-tests": '!"run-tests"',
    "a.exit-code": 'a."exit-code"',
    "a.x && run-tests.exitCode == 0": 'a.x && "run-tests".exitCode == `0`',
    "contains(run-tests.stdout, 'a-b')": "contains(\"run-tests\".stdout, 'a-b')",
    "2fa.code": '"2fa".code',
    "a.x and b.y": "a.x && b.y",
    "a.x OR b.y": "a.x || b.y",
    "a.x or(b.y)": "a.x ||(b.y)",
    "not a.x": "!a.x",
    "not (a.x) and b.y": "!(a.x) && b.y",
    "not a.x and not b.y": "!a.x && !b.y",
    "a.x = `0`": "a.x == `0`",
    "a.x === 'y'": "a.x == 'y'",
    "a.x !== 'y'": "a.x != 'y'",
    "a.x <> `0`": "a.x != `0`",
    "a.x & b.y": "a.x && b.y",
    "a.x eq 0": "a.x == `0`",
    "a.x is not null": "a.x != `null`",
    "a.x is true": "a.x == `true`",
    "a.x = True": "a.x == `true`",
    'a.x = "done"': "a.x == 'done'",
    "a.x > 0": "a.x > `0`",
    "0 < a.x": "`0` < a.x",
    "a.x >= -1.5": "a.x >= `-1.5`",
    "a.x || 0": "a.x || `0`",
    "a.x in [0, 1]": "contains([`0`, `1`], a.x)",
    "'x' in a.y": "contains(a.y, 'x')",
    "'x' not in a.y": "!contains(a.y, 'x')",
    "a.x contains 'y'": "contains(a.x, 'y')",
    "a.x startswith 'y'": "starts_with(a.x, 'y')",
    "a.x ends with 'y'": "ends_with(a.x, 'y')",
    "a['x']": "a.x",
    'a["x-y"]': 'a."x-y"',
    "a.0.x": "a[0].x",
    "$a.x": "a.x",
    "${a.x}": "a.x",
    "{{a.x}}": "a.x",
    "${{ a.x == 'b' }}": "a.x == 'b'",
    "{{a.x}} == 0": "a.x == `0`",
    "a.x == \u201cy\u201d": "a.x == 'y'",
}


@pytest.mark.parametrize("expression", MEANT)
def test_an_expression_of_another_language_is_answered_with_the_one_that_it_means(expression: str) -> None:
    with pytest.raises(BadExpression) as caught:
        compiled(expression)
    assert f": write {MEANT[expression]} (" in caught.value.message
    jmespath.compile(MEANT[expression])


SAID = {
    "1..3": "a range is written out",
    "a.x =~ 'y'": "has no patterns",
    "a.x - 1 == `0`": "does not calculate",
    "a.x + b.y": "does not calculate",
    "a.x ? 'y' : 'z'": "JMESPath has no `? :`",
    "not a.x == b.y": "stand for and, or, not",  # of which part it is meant is not known
    "not (a.x == `1`)": "not is written !",
    "exists(a.x)": "STEP.field != `null`",
    "matches(a.x, 'y')": "has no patterns",
    "empty(a.x)": "write !STEP.field",
}


@pytest.mark.parametrize("expression", SAID)
def test_where_it_is_not_known_what_was_meant_the_rule_is_said(expression: str) -> None:
    with pytest.raises(BadExpression) as caught:
        compiled(expression)
    assert SAID[expression] in caught.value.message
    assert "write a" not in caught.value.message


@pytest.mark.parametrize("text", ["(b", "a b", "a.x[", "'not a.x", "if a.x", "a" * MAX_CHARACTERS + "-b"])
def test_of_what_means_nothing_nothing_is_said(text: str) -> None:
    assert instead(text).expression == ""


def test_texts_in_quotes_stay_as_they_are() -> None:
    assert instead("a.x == 'b-c and d = 1' and b-c.y").expression == "a.x == 'b-c and d = 1' && \"b-c\".y"


def test_how_an_expression_stands_in_yaml_is_said_where_it_cannot_stand_there_as_it_is() -> None:
    assert in_yaml('"a-b".c == `0`') == "'\"a-b\".c == `0`'"
    assert in_yaml("'x' == a.b") == "'''x'' == a.b'"
    assert in_yaml('a."b-c" == `0`') == ""
