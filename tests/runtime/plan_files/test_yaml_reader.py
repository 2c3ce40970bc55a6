"""YAML plan files: values mean what they look like, and nothing in a file can hurt its reader."""

from __future__ import annotations

from itertools import pairwise

import pytest

from plansurvive.plans.definition.parsing import Unreadable
from plansurvive.runtime.plan_files.yaml_reader import parse_yaml

LAYERS = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
LAYERS += [f"{after}: &{after} [{','.join([f'*{before}'] * 10)}]" for before, after in pairwise("abcdefgh")]


def test_values_mean_what_yaml_1_2_says() -> None:
    text = "a: yes\nb: 12:30\nc: 2020-01-01\nd: 010\ne: 0x1f\nf: 1e3\ng: ~\nh:\ni: true\n"
    assert parse_yaml(text + "j: .5\nk: 'no'\nl: off\nm: 0o17") == {
        "a": "yes", "b": "12:30", "c": "2020-01-01", "d": 10, "e": 31, "f": 1000.0, "g": None, "h": None, "i": True,
        "j": 0.5, "k": "no", "l": "off", "m": 15,
    }  # fmt: skip


def test_an_alias_is_its_anchor_value() -> None:
    assert parse_yaml("a: &x {b: [1]}\nc: *x") == {"a": {"b": [1]}, "c": {"b": [1]}}


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2", "PLAN_DUPLICATE_KEY", "line 4, column 3"),
        ("a: [1,", "PLAN_NOT_YAML", "line "),
        ("a: b: c", "PLAN_NOT_YAML", "line 1"),
        ("a: 1\n---\nb: 2", "PLAN_NOT_YAML", "line 2"),
        ("1: 2", "PLAN_NOT_YAML", "line 1"),
        ("? [1]\n: 2", "PLAN_NOT_YAML", "line 1"),
        ("a: !!binary aGk=", "PLAN_NOT_YAML", "tag"),
        ("a: !!python/object/apply:os.system ['id']", "PLAN_NOT_YAML", "tag"),
        ("a: !mine x", "PLAN_NOT_YAML", "tag"),
        ("a: !mine.x", "PLAN_NOT_YAML", "or put the text in quotes"),
        ('x: 1\na: "b-c".d == 1\ny: 1', "PLAN_NOT_YAML", "line 2, column 9: a text that begins with quotes ends with"),
        ("x: 1\na: {{b}} == 1\ny: 1", "PLAN_NOT_YAML", "a value that begins with a bracket ends with it"),
        ("[" * 100_000, "PLAN_TOO_DEEP", "64"),
        ("- " * 10_000 + "x", "PLAN_TOO_DEEP", "64"),
        ("a: &x [*x]", "PLAN_TOO_DEEP", "aliases"),
        ("\n".join(LAYERS), "PLAN_TOO_LARGE", "aliases"),
        ("a: .inf", "PLAN_NOT_FINITE", "inf"),
        ("a: .NaN", "PLAN_NOT_FINITE", "nan"),
        (f"a: {'9' * 5_000}", "PLAN_NOT_FINITE", "inf"),
        ("a: \x01", "PLAN_BAD_TEXT", "character"),
    ],
)
def test_what_a_plan_cannot_hold_is_refused_with_its_place(text: str, code: str, place: str) -> None:
    with pytest.raises(Unreadable) as refused:
        parse_yaml(text)
    assert refused.value.problem.code == code
    assert place in refused.value.problem.message


def test_a_merge_key_is_a_key_like_any_other() -> None:
    assert parse_yaml("<<: {a: 1}") == {"<<": {"a": 1}}
