"""References: what counts as one, what it becomes, and that a value is never looked at again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.plans.errors import BadReference
from plansurvive.plans.expressions.references import MAX_IN_CODE, check_code, describe, fill, fill_at, fill_text, find

VALUES: dict[str, Any] = {
    "step_1": {"rows": [{"name": "ann", "age": 5}], "odd key": 1, "n": 2.5, "ok": False, "text": "hi"},
    "a-b": "dash",
    "list": ["x", {"y": 1}],
    "5": "five",
    "inputs": {"who": "bob"},
    "evil": "{{step_1.text}} $step_1 $$x",
    "null": None,
}

FILLED = [
    ("$step_1", VALUES["step_1"]),
    ("$step_1.rows[0].name", "ann"),
    ("$step_1.rows[?age > `3`].name | [0]", "ann"),
    ('$step_1."odd key"', 1),
    ("$step_1.ok", False),
    ("$list[1].y", 1),
    ("$a-b", "dash"),
    ("$inputs.who", "bob"),
    ("$null", None),
    ("name: {{step_1.rows[0].name}}!", "name: ann!"),
    ("{{ step_1.n }}/{{step_1.ok}}", "2.5/false"),
    ("{{step_1.rows}}", '[{"name": "ann", "age": 5}]'),
    ("{{list | [0]}}", "x"),
    ("{{list[0]}}{{a-b}}", "xdash"),
    ("{{null}}", "null"),
    ('{"a": {"b": {{step_1.n}}}}', '{"a": {"b": 2.5}}'),
    ("{{{a-b}}}", "{dash}"),
    ("$$", "$"),
    ("$$step_1", "$step_1"),
    ("$$$x", "$$x"),
    ("{{{{step_1}}}}", "{{step_1}}"),
    ("{{{{a}}}} is {{a-b}}", "{{a}} is dash"),
    ("$5", "five"),
    ("$evil", "{{step_1.text}} $step_1 $$x"),
    ("<{{evil}}>", "<{{step_1.text}} $step_1 $$x>"),
]


@pytest.mark.parametrize(("text", "value"), FILLED)
def test_a_reference_becomes_its_value(text: str, value: Any) -> None:
    assert fill_text(text, VALUES) == value


UNTOUCHED = [
    *(
        "",
        "plain",
        "$1",
        "$1.50",
        "$6",
        "$5,000",
        "costs $step_1",
        "$step_1 and more",
        "$HOME/x",
        "${step_1}",
        "$(step_1)",
    ),
    *(
        "a $ b",
        "$-x",
        "$ step_1",
        "{{}}",
        "{{ .Names }}",
        "{step_1}",
        "{{step_1",
        "step_1}}",
        "{{step 1}}",
        "$step_1\n",
    ),
]


@pytest.mark.parametrize("text", UNTOUCHED)
def test_anything_else_with_a_dollar_sign_or_braces_is_left_as_it_is(text: str) -> None:
    assert fill_text(text, VALUES) == text


REFUSED = [
    ("$gone", "has no value"),
    ("{{gone.x}}", "has no value"),
    ("$", "has no value"),
    ("$step_1.nothing", "has nothing at 'nothing' (it is an object with rows, odd key, n, ok, text)"),
    ("$list[9]", "it is a list of 2"),
    ("$null.x", "it is null"),
    ("$step_1.rows[", "not a JMESPath expression"),
    ("$step_1.abs('x')", "cannot be applied"),
    ("$step_1.exec('x')", "there is no function 'exec'"),
    ("$step_1." + "!" * 100 + "n", "nested deeper"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_a_reference_without_a_value_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(BadReference) as caught:
        fill_text(text, VALUES)
    assert why in caught.value.message
    assert caught.value.code == "BAD_REFERENCE"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a", "a text"), (3, "the number 3"), (1.5, "the number 1.5"), (True, "true"), (False, "false"),
        (None, "null"), ([1], "a list of 1"), ({"a": 1}, "an object with a"),
    ],
)  # fmt: skip
def test_a_value_is_described_in_words_of_plan_files(value: Any, words: str) -> None:
    assert describe(value) == words


def test_references_are_found_with_their_places_in_reading_order() -> None:
    found = find({"b": ["$x", {"k": "{{y.z}} {{x}}"}], "a": "$$no", "c": "$"})
    assert [(reference.place, reference.root, reference.path, reference.whole) for reference in found] == [
        *((("b", 0), "x", "", True), (("b", 1, "k"), "y", "z", False), (("b", 1, "k"), "x", "", False)),
        (("c",), "", "", True),
    ]


def test_keys_are_never_references() -> None:
    assert fill({"$step_1": {"{{a-b}}": 1}}, VALUES, {}).args == {"$step_1": {"{{a-b}}": 1}}


@pytest.mark.parametrize(
    "text", ["{{a." * 15_000, "{{" * 30_000, "{{a." + " " * 60_000, "{{{{" * 15_000, "{{a" * 20_000]
)
def test_a_hostile_text_is_read_in_linear_time(text: str) -> None:
    assert find({"x": text}) == []


def test_a_whole_reference_cannot_be_code() -> None:
    with pytest.raises(BadReference, match="write it to a file"):
        fill({"command": "$evil"}, VALUES, {"command": "shell"})
    assert fill({"command": "$evil"}, VALUES, {}).args == {"command": VALUES["evil"]}
    assert fill({"command": "$HOME/x"}, VALUES, {"command": "shell"}).args == {"command": "$HOME/x"}


def test_only_the_code_argument_itself_is_quoted() -> None:
    args = {"command": "echo {{evil}}", "env": {"command": "{{evil}}"}, "cwd": "{{evil}}"}
    filled = fill(args, VALUES, {"command": "shell"}).args
    assert filled["command"] == "echo '{{step_1.text}} $step_1 $$x'"
    assert filled["env"]["command"] == filled["cwd"] == VALUES["evil"]


@pytest.mark.parametrize("text", ["echo {{a}}", "$$a", "$5", "$", "ls $HOME", 5, None, "{{{{a}}}} `x`"])
def test_code_where_values_may_stand_passes_the_check(text: Any) -> None:
    check_code(text, "shell")


@pytest.mark.parametrize("language", ["shell", "python"])
def test_code_has_a_bounded_number_of_references(language: str) -> None:
    check_code("x = {{a}}\n" * MAX_IN_CODE, language)
    with pytest.raises(BadReference, match="pass the values in a file"):
        check_code("x = {{a}}\n" * (MAX_IN_CODE + 1), language)


def test_values_kept_elsewhere_are_left_for_the_activity() -> None:
    args = {"a": "$big", "b": ["{{big.x}} {{a-b}}", "$a-b"], "c": "$$big"}
    filled = fill(args, VALUES, {}, {"big"})
    assert filled.deferred == [["a"], ["b", 0]]
    assert filled.args == {"a": "$big", "b": ["{{big.x}} {{a-b}}", "dash"], "c": "$big"}
    assert fill_at(filled.args, filled.deferred, VALUES | {"big": {"x": 1}}, {}) == {
        "a": {"x": 1},
        "b": ["1 dash", "dash"],
        "c": "$big",
    }


TEXT = st.sampled_from([*(text for text, _ in FILLED), *UNTOUCHED, "$big", "{{big.x}}", "{{big}}{{evil}}", "$big.deep"])
ARGS = st.dictionaries(
    st.sampled_from(["a", "b", "command", "$c"]),
    st.recursive(
        TEXT | st.integers(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=2)
    ),
    max_size=3,
)


@given(args=ARGS, big=st.sampled_from([{"x": "$evil", "deep": {"a": "{{evil}}"}}, {"x": "'; touch y #", "deep": "$$"}]))
def test_two_halves_fill_in_what_one_would(args: dict[str, Any], big: Any) -> None:
    quoting: dict[str, Any] = {"command": "shell"}
    everything = VALUES | {"big": big}
    try:
        whole = fill(args, everything, quoting).args
    except BadReference:
        return
    half = fill(args, VALUES, quoting, {"big"})
    sent = json.loads(json.dumps({"args": half.args, "places": half.deferred}))
    assert fill_at(sent["args"], sent["places"], everything, quoting) == whole


@given(value=st.text(max_size=30) | st.sampled_from([text for text, _ in FILLED]))
def test_a_value_is_never_read_again(value: str) -> None:
    values = {"v": value, "w": "W"}
    assert fill_text("$v", values) == value
    assert fill_text("{{v}}", values) == value
    assert fill_text("{{w}}{{v}}{{w}}", values) == f"W{value}W"
