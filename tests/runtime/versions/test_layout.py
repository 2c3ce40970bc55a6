"""The version of the state directory: directories of older versions are migrated once, newer ones refused."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.versions.layout import MARKER, Migration, check, prepare


def notes(state_dir: Path) -> list[str]:
    return (state_dir / "notes.txt").read_text().split() if (state_dir / "notes.txt").exists() else []


def noting(*versions: int) -> dict[int, Migration]:
    """Migrations that write down that they ran."""

    def note(version: int) -> Migration:
        def run(directory: Path) -> None:
            with (directory / "notes.txt").open("a") as file:
                file.write(f"{version}\n")

        return run

    return {version: note(version) for version in versions}


def test_a_directory_of_an_earlier_release_is_migrated_forward_in_order_and_once(state_dir: Path) -> None:
    assert prepare(state_dir, {}) == 1
    assert prepare(state_dir, noting(2, 3)) == 3
    assert prepare(state_dir, noting(2, 3)) == 3
    assert prepare(state_dir, noting(2, 3, 4)) == 4
    assert notes(state_dir) == ["2", "3", "4"]


def test_a_directory_without_a_marker_is_of_the_first_version(state_dir: Path) -> None:
    prepare(state_dir, noting(2))
    assert notes(state_dir) == ["2"]


def test_a_migration_that_was_killed_runs_again_and_those_before_it_do_not(state_dir: Path) -> None:
    def dies(directory: Path) -> None:
        (directory / "half").touch()
        os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if not pid:
        prepare(state_dir, {**noting(2), 3: dies})
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    assert (state_dir / "half").exists()
    assert json.loads((state_dir / MARKER).read_text()) == {"version": 2}
    prepare(state_dir, noting(2, 3))
    assert notes(state_dir) == ["2", "3"]


def test_processes_that_start_together_migrate_once(state_dir: Path) -> None:
    steps: Mapping[int, Migration] = noting(2, 3)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: prepare(state_dir, steps), range(16))) == {3}
    assert notes(state_dir) == ["2", "3"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"version": 99}', "NEWER_STATE"),
        ('{"version": "2"}', "BAD_STATE"),
        ('{"version": true}', "BAD_STATE"),
        ('{"version": 0}', "BAD_STATE"),
        ("[]", "BAD_STATE"),
        ("", "BAD_STATE"),
        ("[" * 5_000, "BAD_STATE"),
    ],
)
def test_a_newer_directory_and_an_unreadable_marker_are_refused_and_left_as_they_are(
    state_dir: Path, text: str, code: str
) -> None:
    (state_dir / MARKER).write_text(text)
    for use in (prepare, check, lambda path: Settings.read({"PLANS_STATE_DIR": str(path)}).make_state_dir()):
        with pytest.raises(PlanError) as refused:
            use(state_dir)
        assert refused.value.code == code
        assert str(state_dir) in refused.value.message
    assert (state_dir / MARKER).read_text() == text


def test_a_new_directory_is_of_this_programs_version(tmp_path: Path) -> None:
    Settings.read({"PLANS_STATE_DIR": str(tmp_path / "new")}).make_state_dir()
    check(tmp_path / "new")
    assert json.loads((tmp_path / "new" / MARKER).read_text())["version"] >= 1
