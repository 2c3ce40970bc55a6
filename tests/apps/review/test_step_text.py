"""A step in a real editor: a program that is given the file and changes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plansurvive.apps.review.step_text import as_text, edits_of
from plansurvive.client.forms.editor import let_edit
from plansurvive.plans.editing.edits import SetField
from plansurvive.plans.errors import PlanError
from tests.apps.review.conftest import Open

STEP: dict[str, Any] = {"id": "w", "tool": "write_file", "args": {"path": "a"}, "description": "x", "status": "ready"}


def editor(tmp_path: Path, script: str) -> str:
    file = tmp_path / "editor"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def test_an_editor_changes_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", editor(tmp_path, 'sed -i s/old/new/ "$1"'))
    assert let_edit("an old text\n") == "an new text\n"


@pytest.mark.parametrize("visual", ["/nowhere/editor", "false", "'unclosed"])
def test_an_editor_that_fails_changes_nothing_and_says_why(visual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", visual)
    with pytest.raises(PlanError) as caught:
        let_edit("text")
    assert caught.value.code == "NO_EDITOR"


def test_only_what_was_changed_becomes_an_edit() -> None:
    text = as_text(STEP)
    assert "status" not in json.loads(text)
    assert edits_of(STEP, text) == []
    assert edits_of(STEP, text.replace('"x"', '"y"')) == [
        SetField(op="set", step_id="w", path="description", value="y")
    ]


def test_control_characters_are_written_as_escapes_and_come_back() -> None:
    step = {**STEP, "description": "\x1b[2J\u202e"}
    assert not set(as_text(step)) & set("\x1b\u202e")
    assert edits_of(step, as_text(step)) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "PLAN_SCHEMA"),
        ("[]", "PLAN_SCHEMA"),
        ('{"id": "v"}', "PLAN_SCHEMA"),
        ('{"id": "w", "x": 1}', "UNKNOWN_FIELD"),
    ],
)
def test_what_is_no_step_is_refused(text: str, code: str) -> None:
    with pytest.raises(PlanError) as caught:
        edits_of(STEP, text)
    assert caught.value.code == code


async def test_without_a_terminal_of_its_own_the_screen_says_there_is_no_editor(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.press("E")
        await screen.until(lambda: "press enter for the form" in screen.said, "the reason")
