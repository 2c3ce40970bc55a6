"""`owns`: which files a plan's runs may replace without being asked, exactly as written and never outside."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.plans.definition.checks.validation import problems
from plansurvive.plans.files.owned import is_owned, pattern_problem
from plansurvive.plans.model import Plan


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("report.md", "report.md"),
        ("out/report.md", "out/report.md"),
        ("out/*.csv", "out/a.csv"),
        ("out/[0-9]?.csv", "out/1x.csv"),
        ("out/**", "out/a"),
        ("out/**", "out/a/b/c"),
        ("out/", "out/a/b"),
        ("**/report.md", "report.md"),
        ("**/report.md", "a/b/report.md"),
        ("out/**/x", "out/x"),
        ("out/**/x", "out/a/b/x"),
        ("**", "a/b"),
    ],
)
def test_a_pattern_covers_what_it_says(pattern: str, path: str) -> None:
    assert is_owned(["other", pattern], path)
    assert not pattern_problem(pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("report.md", "sub/report.md"),
        ("report.md", "Report.md"),
        ("report.md", "report.md.bak"),
        ("*", "a/b"),
        ("out/*", "out/a/b"),
        ("out/**", "out"),
        ("out/**", "outer/a"),
        ("**/x", "x/y"),
        ("a.md", "aXmd"),
        ("../out", "../out"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_a_pattern_covers_nothing_more(pattern: str, path: str) -> None:
    assert not is_owned([pattern], path)


@pytest.mark.parametrize(
    "pattern",
    [
        "/x",
        "~/x",
        "../x",
        "a/../b",
        "a//b",
        ".",
        "./a",
        "!x",
        "a\\b",
        "a**b",
        "**.md",
        "x[",
        "[z-a]",
        "a\nb",
        "a\u200bb",
    ],
)
def test_a_pattern_that_leads_out_or_is_ambiguous_is_a_problem_of_the_plan(pattern: str) -> None:
    plan = Plan.model_validate({"owns": ["ok.md", pattern], "steps": [{"id": "a", "tool": "sleep"}]})
    found = [each for each in problems(plan, {}) if each.code == "BAD_OWNS"]
    assert [each.field for each in found] == ["owns[1]"]
    assert not is_owned([pattern], pattern)


def test_no_pattern_takes_long() -> None:
    began = time.process_time()
    hostile = ["*a" * 400 + "b", "**/" * 300 + "x", "a*" * 400]
    assert not is_owned(hostile * 30, "/".join(["a" * 250] * 15))
    assert time.process_time() - began < 60


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_pattern_and_no_path_raise(pattern: str, path: str) -> None:
    if pattern_problem(pattern):
        assert not is_owned([pattern], path)
    else:
        is_owned([pattern], path)


@given(st.lists(st.sampled_from(["a", "b.md", "c-1", "[x"]), min_size=1, max_size=4))
def test_a_path_without_wildcards_is_its_own_pattern(names: list[str]) -> None:
    path = "/".join(names)
    assert is_owned([path], path) is not pattern_problem(path).startswith("has `[`")
