"""The rules that the tests of this folder run are those of deploy/prometheus, with shorter times and nothing else."""

from __future__ import annotations

import re

import pytest

from tests.alerts.scaled_rules import scaled
from tests.deploy.test_alerts import rules


def test_only_times_are_changed() -> None:
    given = rules()
    (group,) = scaled({"groups": [{"rules": given}]})["groups"]
    for rule, short in zip(given, group["rules"], strict=True):
        assert short["expr"] != rule["expr"] or short.get("for") != rule.get("for"), rule["alert"]
        assert _without_numbers(short["expr"]) == _without_numbers(rule["expr"])
        assert {**short, "expr": "", "for": ""} == {**rule, "expr": "", "for": ""}


def test_a_minute_is_two_seconds() -> None:
    rule = {"expr": "sum(increase(a[15m])) > 0 and b offset 2h < 900", "for": "10m"}
    (group,) = scaled({"groups": [{"rules": [rule]}]})["groups"]
    assert group["rules"] == [{"expr": "sum(increase(a[30s])) > 0 and b offset 240s < 30", "for": "20s"}]


def test_a_number_that_may_be_a_time_must_be_named() -> None:
    with pytest.raises(ValueError, match="7200"):
        scaled({"groups": [{"rules": [{"expr": "max(a) > 7200"}]}]})


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+[smh]?\b", "N", text)
