"""What is unusual in a text is shown exactly, named, and nothing else is touched."""

from __future__ import annotations

import json
import time

import pytest

from plansurvive.plans.text.safe_text import exact, json_text, line, safe, unusual
from tests.plans.hostile_texts import HARMLESS, HOSTILE, read_back

VISIBLE = set("⇥│├") | {"\n"}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_shown_exactly_and_without_any_of_its_tricks(text: str) -> None:
    shown = exact(text)
    assert read_back(shown) == text
    assert safe(shown) == shown
    assert all(" " <= char <= "~" or char in VISIBLE or exact(char) == char for char in shown)
    assert " " * 21 not in shown
    assert "\n" * 7 not in shown
    assert not any(row.endswith(" ") for row in shown.split("\n"))


QUIET = ("after much text", "escapes spelt out", "forged rows", "tabs")
"""Nothing in these is unusual but their length or what they say, and that is shown."""


@pytest.mark.parametrize("name", [name for name in HOSTILE if name not in QUIET])
def test_what_is_unusual_is_named(name: str) -> None:
    found = unusual(HOSTILE[name])
    assert found
    assert all(safe(each) == each and exact(each) == each for each in found)


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_of_any_language_is_left_as_it_is(text: str) -> None:
    assert exact(text) == text
    assert unusual(text) == []


def test_the_names_say_which_characters_and_how_often() -> None:
    assert unusual("a\u200bb\u200bc") == ["U+200B ZERO WIDTH SPACE: invisible, 2 times"]
    assert unusual("p\u0430y") == ["U+0430 CYRILLIC SMALL LETTER A: in a word of Latin letters"]
    assert unusual("x" + " " * 90 + "y") == ["90 spaces in a row"]
    assert len(unusual("".join(map(chr, range(0xE000, 0xE100))))) == 21


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_json_keeps_the_value_and_shows_what_is_in_it(text: str) -> None:
    shown = json_text(json.dumps({"command": text}, ensure_ascii=False))
    assert json.loads(shown) == {"command": text}
    assert [char for char in shown if unusual(f"|{char}|")] == []


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_long_text_takes_a_time_in_proportion() -> None:
    def seconds(text: str) -> float:
        began = time.process_time()
        exact(text)
        unusual(text)
        return time.process_time() - began

    for piece in (" ", "\n", "a \u200b", "\u0430b ", "\u0301", "\\u{"):
        small, large = seconds(piece * 5_000), seconds(piece * 40_000)
        assert large < 40 * small + 0.05, piece


def test_lines_of_lists_keep_the_joiners_that_emoji_need() -> None:
    assert line("👨\u200d👩 ❤\ufe0f") == "👨\u200d👩 ❤\ufe0f"
    assert line("a\u200bb\u3164") == "a\\u200bb\\u3164"
