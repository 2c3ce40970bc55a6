"""Which files are not as a run last saw them: changed, deleted, turned into something else; the others are left out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from temporalio.testing import ActivityEnvironment

from plansurvive.activities.lifecycle.offered import FileComparer
from plansurvive.activities.workspace.identity import identity_of
from plansurvive.plans.file_stamps import FileTracker, stamp_of
from plansurvive.plans.files.file_check import MAX_FILES, FileDifferences, FilesSeen


def _seen(workspace: Path, *names: str) -> FileTracker:
    files = FileTracker()
    for name in names:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(name)
        files.track_read(name, (workspace / name).read_bytes())
    return files


def _compared(workspace: Path, files: FileTracker) -> FileDifferences:
    found: FileDifferences = ActivityEnvironment().run(
        FileComparer().compare_files, FilesSeen.of(files, str(workspace))
    )
    return found


def test_files_that_are_as_they_were_are_not_told_whatever_their_time(workspace: Path) -> None:
    files = _seen(workspace, "a.txt", "sub/b.txt")
    os.utime(workspace / "a.txt", (1, 1))
    (workspace / "new.txt").write_text("nobody asked")
    assert _compared(workspace, files) == FileDifferences()


def test_a_changed_file_and_one_of_the_same_size_are_told(workspace: Path) -> None:
    files = _seen(workspace, "a.txt", "b.txt", "c.txt")
    (workspace / "a.txt").write_text("something longer")
    (workspace / "b.txt").write_text("B.txt")
    assert _compared(workspace, files) == FileDifferences(changed=["a.txt", "b.txt"])


def test_a_file_that_is_gone_or_cannot_be_read_any_more_is_told_as_deleted(workspace: Path, tmp_path: Path) -> None:
    files = _seen(workspace, "gone.txt", "folder.txt", "away.txt")
    for name in ("gone.txt", "folder.txt", "away.txt"):
        (workspace / name).unlink()
    (workspace / "folder.txt").mkdir()
    (tmp_path / "outside.txt").write_text("away.txt")
    (workspace / "away.txt").symlink_to(tmp_path / "outside.txt")
    assert _compared(workspace, files) == FileDifferences(deleted=["gone.txt", "folder.txt", "away.txt"])


def test_what_a_run_deleted_itself_or_knows_to_be_stale_is_not_looked_at(workspace: Path) -> None:
    files = _seen(workspace, "deleted.txt", "stale.txt")
    files.track_deleted("deleted.txt")
    files.invalidate(["stale.txt"])
    (workspace / "stale.txt").write_text("changed")
    assert _compared(workspace, files) == FileDifferences()


def test_files_of_other_machines_are_left_out_and_of_very_many_the_last_are_looked_at() -> None:
    files = FileTracker()
    files.track_read("gpu:far.txt", b"far")
    for number in range(MAX_FILES + 1):
        files.stamps[f"{number}.txt"] = stamp_of(b"x")
    seen = FilesSeen.of(files, "/w", ["gpu"])
    assert len(seen.stamps) == MAX_FILES
    assert "gpu:far.txt" not in seen.stamps
    assert "0.txt" not in seen.stamps


def test_of_a_workspace_that_is_gone_every_file_is_told_as_deleted(workspace: Path) -> None:
    files = _seen(workspace, "a.txt")
    assert _compared(workspace / "nowhere", files) == FileDifferences(deleted=["a.txt"])


def test_files_of_another_directory_under_the_same_path_are_not_the_ones_that_were_seen(workspace: Path) -> None:
    files = _seen(workspace, "a.txt")
    seen = FilesSeen.of(files, str(workspace), directory=identity_of(str(workspace)))
    found = ActivityEnvironment().run(FileComparer().compare_files, seen)
    assert found == FileDifferences()
    shutil.copytree(workspace, workspace.parent / "copy")
    workspace.rename(workspace.parent / "away")
    (workspace.parent / "copy").rename(workspace)
    found = ActivityEnvironment().run(FileComparer().compare_files, seen)
    assert found == FileDifferences(deleted=["a.txt"])
