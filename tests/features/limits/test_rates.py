"""Rates as the operator writes them."""

from __future__ import annotations

import pytest

from plansurvive.features.limits.rates import rate_of


@pytest.mark.parametrize(
    ("text", "amount", "seconds"),
    [
        ("60/minute", 60, 60),
        ("10/second", 10, 1),
        ("1000 / hour", 1_000, 3_600),
        ("90_000/minute", 90_000, 60),
        ("5,000/day", 5_000, 86_400),
        ("100/15 minutes", 100, 900),
    ],
)
def test_a_rate_is_a_number_per_unit(text: str, amount: int, seconds: int) -> None:
    rate = rate_of(text)
    assert (rate.amount, rate.seconds) == (amount, seconds)
    assert rate_of(rate.text) == rate


@pytest.mark.parametrize(
    "text",
    ["", "60", "60/fortnight", "-1/minute", "0/minute", "1e9/second", "60/8 days", "1/0 seconds", "9" * 20 + "/day"],
)
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"write a number per unit|must be between"):
        rate_of(text)
