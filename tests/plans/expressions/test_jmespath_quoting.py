"""Values in an expression are literals, whatever they contain; inside quotes they are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from plansurvive.plans.errors import BadReference
from plansurvive.plans.expressions.conditions import MAX_CHARACTERS, search
from plansurvive.plans.expressions.jmespath_quoting import join_jmespath
from plansurvive.plans.expressions.references import fill_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(value=JSON)
def test_a_value_is_compared_as_it_is_and_never_read_as_code(value: Any) -> None:
    expression = join_jmespath(["[v == ", ", 'a']"], [value])
    assume(len(expression) <= MAX_CHARACTERS)
    assert search(expression, {"v": value}) == [True, "a"]


@pytest.mark.parametrize("text", ["id == '{{s}}'", 'a."{{s}}"', "id == `{{s}}`", "'it''s' == '{{s}}'"])
def test_a_value_inside_quotes_is_refused(text: str) -> None:
    with pytest.raises(BadReference, match="outside quotes"):
        fill_text(text, {"s": "x"}, "jmespath")


def test_quotes_before_a_value_that_are_closed_again_are_no_hindrance() -> None:
    filled = fill_text("name == 'it\\'s' && \"odd key\" == {{s}}", {"s": "' || `1` == `1"}, "jmespath")
    assert search(filled, {"name": "it's", "odd key": "' || `1` == `1"}) is True
    assert search(filled, {"name": "it's", "odd key": "x"}) is False
