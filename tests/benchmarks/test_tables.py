"""Tables tell on every row whether the bar was reached, and the document keeps what people wrote around them."""

from __future__ import annotations

from pathlib import Path

from benchmarks import document
from benchmarks.tables import Table


def table(title: str, reached: bool | None) -> Table:
    made = Table(title=title, columns=["what", "value"])
    made.add("chain", "1.07", reached=reached)
    return made


def test_a_row_says_whether_it_reached_its_bar() -> None:
    assert "| PASS" in table("Speed", True).markdown()
    assert "| FALL SHORT" in table("Speed", False).markdown()
    assert [table("Speed", reached).shorts for reached in (True, False, None)] == [0, 1, 0]


def test_writing_a_table_again_replaces_it_and_keeps_all_else(tmp_path: Path) -> None:
    file = tmp_path / "performance.md"
    file.write_text(f"# Title\n\nBefore.\n\n{document.BEGIN}\n{document.END}\n\nAfter.\n")
    document.write(file, [table("Speed", False), table("Size", True)], repeats=5)
    document.write(file, [table("Speed", True)], repeats=5)
    text = file.read_text()
    assert text.startswith("# Title\n\nBefore.\n\n")
    assert text.endswith("\n\nAfter.\n")
    assert text.count("## Speed") == text.count("## Size") == 1
    assert "FALL SHORT" not in text
