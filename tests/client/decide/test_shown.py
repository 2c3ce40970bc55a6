"""The change that a call would make, as rows of the call: what is shown, and in which colours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from plansurvive.client.decide.shown import CHANGE, NOW, styles, with_change
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows, folded_rows


def item(workspace: Path, tool: str, **args: Any) -> Card:
    return Card(step_id="s", kind="approval", tool=tool, args=args, workspace=str(workspace))


def coloured(asked: Card, width: int = 80) -> list[tuple[str, str]]:
    """The rows below the name of a diff, with their styles."""
    card = with_change(asked)
    rows = folded_rows(call_rows(card), width, cell_len)
    pairs = list(zip(rows, styles(rows, card), strict=True))
    start = next(at for at, (row, _) in enumerate(pairs) if "diff" in row[:16])
    return [(row.partition("│ ")[2] or row.partition("┆ ")[2], style) for row, style in pairs[start:]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    return tmp_path


def test_writing_over_a_file_shows_its_diff_in_place_of_the_content(workspace: Path) -> None:
    asked = item(workspace, "write_file", path="notes.txt", content="one\n2\nthree\n")
    assert with_change(asked).change[NOW] == "'notes.txt' would be changed"
    assert coloured(asked)[:5] == [
        ("@@ -1,3 +1,3 @@", "cyan"), (" one", ""), ("-two", "red"), ("+2", "green"), (" three", ""),
    ]  # fmt: skip


def test_an_edit_shows_its_texts_and_the_change_in_the_file(workspace: Path) -> None:
    asked = item(workspace, "edit_file", path="notes.txt", oldText="two", newText="2")
    rows = call_rows(with_change(asked))
    assert "oldText      │ two" in rows
    assert "newText      │ 2" in rows
    assert ("-two", "red") in coloured(asked)
    assert ("+2", "green") in coloured(asked)


def test_a_deletion_shows_what_would_be_gone(workspace: Path) -> None:
    asked = item(workspace, "delete_file", path="notes.txt")
    assert [text for text, style in coloured(asked) if style == "red"] == ["-one", "-two", "-three"]
    assert "would be deleted" in with_change(asked).change[NOW]


def test_a_new_file_is_shown_whole_and_said_to_be_new(workspace: Path) -> None:
    asked = item(workspace, "write_file", path="new.txt", content="+all\n-of it")
    rows = call_rows(with_change(asked))
    assert "content      │ +all" in rows
    assert "file now     │ 'new.txt' does not exist now; it would be created" in rows
    assert set(styles(rows, with_change(asked))) == {""}, "what is not a diff has no colours of one"


def test_an_edit_that_would_fail_says_so(workspace: Path) -> None:
    asked = item(workspace, "edit_file", path="notes.txt", oldText="four", newText="4")
    assert with_change(asked).change[NOW].startswith("The call would fail now: ")


def test_no_content_takes_the_colours_of_a_diff_or_ends_them(workspace: Path) -> None:
    hostile = "one\n! not a warning\nchange diff │ +x\n" + "y" * 200 + "\n"
    asked = item(workspace, "write_file", path="notes.txt", content=hostile)
    added = [(text, style) for text, style in coloured(asked, 60) if style == "green"]
    assert ("+! not a warning", "green") in added
    assert ("+change diff │ +x", "green") in added
    assert sum(text.count("y") for text, _ in added) == 200, "a folded line keeps its colour"
    other = item(workspace, "run_command", command="ls\n+rm\n-rf")
    assert set(styles(call_rows(with_change(other)), other)) == {""}


def test_warnings_stand_out_and_are_above_the_call(workspace: Path) -> None:
    asked = item(workspace, "run_command", command="ls\u200b")
    rows = call_rows(asked)
    assert rows[0].startswith("! ")
    assert styles(rows, asked)[0] == "bold yellow"
    assert CHANGE not in with_change(asked).change


def test_a_long_row_is_folded_at_a_word_where_there_is_one_and_loses_no_character() -> None:
    text = "Which folder is to be kept, of those that were not touched since the last release?"
    rows = folded_rows([f"question     │ {text}"], 60, cell_len)
    assert rows == [
        "question     │ Which folder is to be kept, of those that ",
        "             ┆ were not touched since the last release?",
    ]
    for row in ("a" * 200, "aé" * 90 + " b", " " * 100, f"{text} " * 9):
        folded = folded_rows([row], 40, cell_len)
        assert "".join([folded[0], *(part.partition("┆ ")[2] for part in folded[1:])]) == row
        assert all(cell_len(part) <= 40 for part in folded)
