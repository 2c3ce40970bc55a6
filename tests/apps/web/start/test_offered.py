"""What the start page lists: by folder, and never more at once than a phone shows."""

from __future__ import annotations

from pathlib import Path

from plansurvive.apps.web.start.pages import FEW, offered
from plansurvive.client.requests.roots import Listed
from tests.apps.web.visiting import Visitor


def files(*names: str) -> list[Listed]:
    return [Listed(Path("/w") / name, name, Path("/w")) for name in names]


def test_a_few_files_are_all_shown_by_folder_and_without_a_filter() -> None:
    found = offered(files("b.yaml", "sub/a.yaml", "a.yaml"), [])
    assert [(each.name, [file.name for file in each.files], each.is_open) for each in found.folders] == [
        ("", ["a.yaml", "b.yaml"], True), ("sub", ["sub/a.yaml"], True),
    ]  # fmt: skip
    assert not found.has_filter


def test_of_many_files_only_a_short_top_folder_is_unfolded() -> None:
    many = files("a.yaml", *(f"sub/{number}.yaml" for number in range(FEW)))
    assert [each.is_open for each in offered(many, []).folders] == [True, False]
    assert [each.is_open for each in offered(files(*(f"{number}.yaml" for number in range(20))), []).folders] == [False]


def test_a_filter_leaves_the_files_whose_names_have_all_words() -> None:
    found = offered(files("north/Release.yaml", "south/release.yaml", "north/build.yaml"), [], " release  NORTH ")
    assert [file.name for each in found.folders for file in each.files] == ["north/Release.yaml"]
    assert found.has_filter


async def test_the_start_page_folds_long_lists_and_filters_without_javascript(
    visitor: Visitor, workspace: Path
) -> None:
    (workspace / "many").mkdir()
    for number in range(20):
        (workspace / "many" / f"plan-{number}.yaml").write_text("steps: []")
    assert '<details class="folder"><summary>many' in await visitor.get("/start")
    text = await visitor.get("/start?find=plan-17")
    assert "many/plan-17.yaml" in text
    assert "many/plan-16.yaml" not in text
    assert '<details class="folder" open>' in text
    assert "No plan file has these words" in await visitor.get("/start?find=%3Cb%3E")
