"""The change that a call would make to a file as it is now: what is shown of it, and what never is."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.client.decide.call_diff import COMPARED_BYTES, DELETED_LINES, CallDiff, call_diff
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.views.models.card import Card


def item(workspace: Path, tool: str, **args: Any) -> Card:
    return Card(step_id="s", kind="approval", tool=tool, args=args, workspace=str(workspace))


def diff(workspace: Path, tool: str, **args: Any) -> CallDiff:
    found = call_diff(item(workspace, tool, **args))
    assert found is not None
    return found


def test_a_written_file_is_compared_with_the_present_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    found = diff(tmp_path, "write_file", path="a.txt", content="one\n2\nthree\n")
    assert (found.kind, found.rows) == ("changed", ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"])
    assert (found.added, found.removed) == (1, 1)
    assert found.before is not None
    assert (found.before.bytes, found.before.sha256) == (14, hashlib.sha256(b"one\ntwo\nthree\n").hexdigest())
    assert diff(tmp_path, "write_file", path="a.txt", content="one\ntwo\nthree\n").kind == "same"


def test_a_new_file_is_all_added(tmp_path: Path) -> None:
    for found in (
        diff(tmp_path, "write_file", path="sub/new", content="x\ny"),
        diff(tmp_path, "edit_file", path="sub/new", oldText="", newText="x\ny"),
    ):
        assert found.kind == "created"
        assert found.rows == ["@@ -0,0 +1,2 @@", "+x", "+y", "\\ No newline at end of file"]
        assert found.before is None
    assert not (tmp_path / "sub").exists()


def test_an_edit_is_shown_where_it_would_take_place(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("\n".join(map(str, range(50))))
    found = diff(tmp_path, "edit_file", path="a", oldText="25\n26", newText="x")
    assert [row for row in found.rows if row[0] in "+-"] == ["-25", "-26", "+x"]
    assert len(found.rows) < 12


@pytest.mark.parametrize(
    ("tool", "args", "why"),
    [
        ("edit_file", {"oldText": "nine", "newText": "x"}, "does not contain oldText"),
        ("edit_file", {"oldText": "o", "newText": "x"}, "more than once, at lines 1, 2"),
        ("edit_file", {"oldText": "", "newText": "x"}, "exists now"),
        ("edit_file", {"path": "gone", "oldText": "a", "newText": "x"}, "does not exist now: the call would fail"),
        ("delete_file", {"path": "gone"}, "does not exist now: the call would fail"),
        ("delete_file", {"path": "folder"}, "is a directory"),
        ("write_file", {"path": "folder", "content": "x"}, "is a directory"),
        ("write_file", {"path": "../out", "content": "x"}, "outside the workspace"),
        ("write_file", {"path": "pipe", "content": "x"}, "a pipe, device, socket or link"),
        ("write_file", {"path": "leads-out", "content": "x"}, "outside the workspace"),
        ("write_file", {"path": "twice", "content": "x"}, "another hard link"),
        ("write_file", {"path": "a\0b", "content": "x"}, "NUL"),
        ("edit_file", {"path": "binary", "oldText": "a", "newText": "x"}, "is not a text file"),
    ],
)
def test_what_would_fail_now_is_said(tool: str, args: dict[str, Any], why: str, tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    (root / "folder").mkdir(parents=True)
    (root / "a").write_text("one\ntwo")
    (root / "binary").write_bytes(b"\xff\x00")
    (tmp_path / "secret").write_text("hunter2")
    (root / "leads-out").symlink_to(tmp_path / "secret")
    (root / "twice").hardlink_to(tmp_path / "secret")
    os.mkfifo(root / "pipe")
    found = diff(root, tool, **{"path": "a", **args})
    assert found.kind == "not_applicable"
    assert why in found.note
    assert not found.lines
    assert "hunter2" not in str(found)


def test_a_deleted_file_is_shown_as_far_as_it_is_short(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("a\nb\n")
    assert diff(tmp_path, "delete_file", path="short").rows == ["-a", "-b"]
    (tmp_path / "long").write_text("x\n" * 5_000)
    found = diff(tmp_path, "delete_file", path="long")
    assert len(found.lines) == DELETED_LINES
    assert "the first 400 of 5000 lines" in found.note
    (tmp_path / "binary").write_bytes(b"\0")
    assert "is not a text file (1 byte now); it would be deleted" in diff(tmp_path, "delete_file", path="binary").note
    (tmp_path / "link").symlink_to("short")
    assert "it would be deleted, and not what it leads to" in diff(tmp_path, "delete_file", path="link").note


@pytest.mark.parametrize("name", [".env", "id_rsa", "app.key", ".ssh/config", "secrets.yaml", "link-to-secret"])
def test_what_is_in_a_file_that_may_hold_secrets_is_not_shown(name: str, tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    for path in (".env", "id_rsa", "app.key", ".ssh/config", "secrets.yaml"):
        (tmp_path / path).write_text("password=hunter2")
    (tmp_path / "link-to-secret").symlink_to(".env")
    for tool, args in (("write_file", {"content": "new"}), ("edit_file", {"oldText": "password", "newText": "x"})):
        found = diff(tmp_path, tool, path=name, **args)
        assert (found.kind, found.lines) == ("not_shown", ())
        assert "may hold secrets (16 bytes now)" in found.note
        assert "hunter2" not in str(found)


def test_a_huge_file_is_neither_read_whole_nor_compared(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(50 * 1024**3)
    found = diff(tmp_path, "write_file", path="huge", content="x")
    assert (found.kind, found.lines) == ("not_shown", ())
    assert "too large to compare: 53,687,091,200 bytes now" in found.note
    (tmp_path / "lines").write_text("\n" * (COMPARED_BYTES - 1))
    assert "more than 4,000 lines" in diff(tmp_path, "write_file", path="lines", content="x").note


def test_everything_unusual_in_a_changed_line_is_visible(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("safe\n")
    found = diff(tmp_path, "write_file", path="a", content="sa\u202efe\r\n\x1b[2J\n")
    assert found.rows[1:] == ["-safe", "+sa\\u{202e}fe\\u{d}", "+\\u{1b}[2J"]


def test_an_empty_line_that_stays_is_empty_and_not_a_space(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n\ntwo\n")
    found = diff(tmp_path, "write_file", path="a", content="one\n\n2 \n")
    assert found.rows[1:] == [" one", "", "-two", "+2\\u{20}"]


def test_nothing_is_looked_at_where_no_plan_may_work(tmp_path: Path) -> None:
    rules = WorkspaceRules(state=str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "token").write_text("hunter2")
    for root, path in ((Path("/etc"), "hostname"), (tmp_path, "state/token"), (tmp_path / "state", "token")):
        found = call_diff(item(root, "write_file", path=path, content="x"), rules=rules)
        assert found is not None
        assert not found.lines
        assert found.kind in ("unknown", "not_applicable")
    gone = call_diff(item(tmp_path / "gone", "write_file", path="a", content="x"))
    assert gone is not None
    assert gone.kind == "unknown"


def test_only_calls_that_change_one_file_in_a_known_way_have_a_diff(tmp_path: Path) -> None:
    assert call_diff(item(tmp_path, "append_line", path="a", content="x")) is None
    assert call_diff(item(tmp_path, "write_file", path="a", content={"not": "text"})) is None
    asked = item(tmp_path, "write_file", path="a", content="x")
    assert call_diff(asked.model_copy(update={"kind": "recovery"})) is None
    large = {"big": LargeValue(sha256="ab" * 32, bytes=70_000, preview="x")}
    later = call_diff(asked.model_copy(update={"large": large}))
    assert later is not None
    assert (later.kind, later.lines) == ("unknown", ())
