"""What a release writes: the version in every place that names it, and its section of the changelog."""

from __future__ import annotations

import re
import shutil
from datetime import date
from pathlib import Path

import pytest

from scripts.release import PLACES, RELEASES, ROOT, SCENARIOS, VERSION, changelog, current, refusal, stamped

TEXT = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A. (2026-11-22)\n"


def test_every_place_that_names_the_version_is_known_and_gets_the_new_one(tmp_path: Path) -> None:
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for path, text in stamped(tmp_path, "98.7.6").items():
        assert "98.7.6" in text, path
        path.write_text(text)
    assert current(tmp_path) == "98.7.6"
    named = re.compile(rf"plans-(?:worker|web):{VERSION.pattern}")
    pages = [path for pattern in ("*.yml", "*.md", "docs/**/*.md", "deploy/**/*.yaml") for path in ROOT.glob(pattern)]
    assert {path.relative_to(ROOT).as_posix() for path in pages if named.search(path.read_text())} <= set(PLACES)


def test_a_place_that_names_another_version_is_refused(tmp_path: Path) -> None:
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    chart = tmp_path / "deploy/helm/plans/Chart.yaml"
    chart.write_text(chart.read_text().replace(current(), "0.0.1"))
    with pytest.raises(ValueError, match=r"Chart\.yaml does not say"):
        stamped(tmp_path, "98.7.6")


def test_what_is_unreleased_becomes_the_section_of_the_release() -> None:
    found = changelog(TEXT, "1.0.0", date(2026, 11, 22))
    assert found == TEXT.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [1.0.0] - 2026-11-22\n")
    assert changelog(
        found.replace("## [Unreleased]\n", "## [Unreleased]\n\n### Added\n\n- B.\n"), "1.0.1", date(2026, 11, 23)
    )


def test_a_release_without_changes_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing under Unreleased"):
        changelog(changelog(TEXT, "1.0.0", date(2026, 11, 22)), "1.0.1", date(2026, 11, 23))


def test_histories_are_kept_of_every_release_that_the_changelog_names_and_of_no_other() -> None:
    named = re.findall(rf"^## \[({VERSION.pattern})\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    kept = {path.name: {file.name.rpartition(".")[0] for file in path.iterdir()} for path in RELEASES.glob("*")}
    assert kept.keys() == set(named)
    lacking = {version: [name for name in SCENARIOS if f"{name}.1" not in files] for version, files in kept.items()}
    assert not any(lacking.values()), lacking


def test_a_version_is_released_once_and_none_after_a_newer_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    assert [refusal(version, tmp_path) for version in ("1.2.0", "1.2.1", "2.0.0")] == ["", "", ""]
    (tmp_path / RELEASES.relative_to(ROOT) / "1.2.0").mkdir(parents=True)
    assert "released already" in refusal("1.2.0", tmp_path)
    assert "not newer" in refusal("1.1.9", tmp_path)
    assert "not a version" in refusal("v1.2.1", tmp_path)
