"""The words people read are those of the glossary in ARCHITECTURE.md: what its last column names does not occur.

Code spans, code blocks and measured tables are not prose and are left aside. SCOPE says what is read; it can grow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from plansurvive.client.cli.app import app
from scripts.sentences import PACKAGES, drawn, prose, sentences, strings
from tests.test_imports import ROOT

ALLOWED = {
    "is no": ("there is no", "is no longer"),
    "anew": (),
}
"""Contexts in which a word of the last column may stand."""


def instead_of(page: str) -> list[str]:
    """The words of the last column of the glossary's tables."""
    section = re.search(r"^## Glossary$.*?(?=^## )", page, re.MULTILINE | re.DOTALL)
    assert section, "ARCHITECTURE.md has a section Glossary"
    rows = [row.strip("|").split(" | ") for row in section[0].splitlines() if row.startswith("| ")]
    cells = [row[-1].strip() for row in rows if "---" not in row[-1] and "instead of" not in row[-1]]
    return [word.strip() for cell in cells for word in cell.split(",") if word.strip()]


WORDS = instead_of((ROOT / "ARCHITECTURE.md").read_text())


def wrong_words(text: str, words: list[str] = WORDS) -> list[str]:
    """The words of `words` in a text, each with what stands around it."""
    found = []
    for word in words:
        for match in re.finditer(rf"\b{re.escape(word)}\b", text, re.IGNORECASE):
            around = text[max(0, match.start() - 20) : match.end() + 20]
            allowed = any(context in around.lower() for context in ALLOWED.get(word, ()))
            if not allowed:
                found.append(f"{word}: ...{around}...")
    return found


def helps() -> str:
    """The help texts of all commands and their options."""
    group = typer.main.get_command(app)
    commands = vars(group)["commands"].values()
    texts = [
        each.help for command in (group, *commands) for each in (command, *command.params) if hasattr(each, "help")
    ]
    assert len(texts) > len(commands)
    return "\n".join(text or "" for text in texts)


SCOPE: dict[str, Callable[[], str]] = {
    **{
        str(page.relative_to(ROOT)): lambda page=page: prose(page)  # type: ignore[misc]
        for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    },
    "help of the commands": helps,
    **{f"texts in {package}/": lambda package=package: "\n".join(strings(ROOT / package)) for package in PACKAGES},  # type: ignore[misc]
}


@pytest.mark.parametrize("name", SCOPE)
def test_people_read_the_words_of_the_glossary(name: str) -> None:
    text = SCOPE[name]()
    assert text
    assert wrong_words(text) == []


FOR_DEVELOPERS = {"faults.md", "temporal.md", "sources.md"}


def own_papers(text: str) -> list[str]:
    """Citations of papers that only developers know."""
    return re.findall(r"\b(?:[Ss]eed \d{3}|DESIGN|REQUIREMENTS|FAULTS|TEMPORAL\.md|LAYOUT)\b", text)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_pages_for_users_do_not_cite_our_own_papers(page: Path) -> None:
    if page.name in FOR_DEVELOPERS:
        assert own_papers(page.read_text())
    else:
        assert own_papers(page.read_text()) == []


def test_a_citation_of_our_own_papers_is_seen() -> None:
    assert own_papers("as in seed 004, DESIGN 2.2 and FAULTS, T7") == ["seed 004", "DESIGN", "FAULTS"]


def test_the_glossary_names_words_to_avoid() -> None:
    assert {"turnover", "flying", "landed", "mended", "anew", "is no"} <= set(WORDS)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_the_glossary_replaces_is_seen(word: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\nSomething {word.capitalize()} here.\n\n```\nquiet\n```\n")
    assert wrong_words(prose(page))


def test_code_and_allowed_contexts_are_left_aside(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("There is no server, and it is no longer needed: `is no` [x](anew.md)\n\n```\nflying\n```\n")
    assert wrong_words(prose(page)) == []


@pytest.mark.slow
def test_a_seed_draws_the_same_sentences_of_code_and_documents() -> None:
    found = list(sentences(ROOT))
    first = drawn(found, 1, 200)
    assert first == drawn(reversed(found), 1, 200) != drawn(found, 2, 200)
    kinds = {place.split()[0].rpartition(".")[2] for place, _ in first}
    assert kinds == {"py", "md"}
    assert "the plan has no step '…'" in "\n".join(text for _, text in found), "messages, with what is filled in"
