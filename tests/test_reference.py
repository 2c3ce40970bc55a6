"""The pages of docs/reference are what `make docs` would write from today's code."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from scripts import reference


def test_the_reference_is_up_to_date() -> None:
    names = [str(file.relative_to(reference.ROOT)) for file, _ in reference.outdated()]
    assert names == [], "run `make docs`"


def test_a_page_that_differs_or_is_missing_is_seen(tmp_path: Path) -> None:
    assert [file.name for file, _ in reference.outdated(tmp_path)] == list(reference.PAGES)
    (tmp_path / reference.FOLDER).mkdir(parents=True)
    for file, text in list(reference.outdated(tmp_path)):
        file.write_text(text)
    assert list(reference.outdated(tmp_path)) == []
    page = tmp_path / reference.FOLDER / "errors.md"
    page.write_text(page.read_text().replace("CONFLICT", "CONFLICTS"))
    assert [file.name for file, _ in reference.outdated(tmp_path)] == ["errors.md"]


def test_a_setting_without_a_section_is_seen() -> None:
    sections = {title: section for title, section in reference.SETTINGS.items() if title != "LLM"}
    with pytest.raises(LookupError, match="model"):
        reference.settings(sections)


def test_a_field_of_a_plan_file_that_differs_is_seen(tmp_path: Path) -> None:
    shown = (reference.ROOT / reference.PLAN_FILES).read_text()
    assert reference.with_fields(shown) == shown
    changed = tmp_path / reference.PLAN_FILES
    changed.parent.mkdir()
    changed.write_text(shown.replace("| `tolerate` |", "| `tolerates` |"))
    assert (changed, shown) in list(reference.outdated(tmp_path))


class Named(BaseModel):
    name: str
    """What it is called,
    in docs/files.md#names."""


class Aged(Named):
    age: int = 0
    """How old it is."""


def test_the_texts_of_fields_are_read_with_those_of_parents() -> None:
    texts = reference.field_texts(Aged)
    assert texts == {"name": "What it is called, in docs/files.md#names.", "age": "How old it is."}
    assert reference.linked(texts["name"]) == "What it is called, in [files](../files.md#names)."
