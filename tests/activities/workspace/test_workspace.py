"""Nothing a tool is asked to do leads out of the workspace."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from plansurvive.activities.workspace.contents import read_bytes, write_beside
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.errors import ToolError
from tests.activities.attempts import Attempts

OUTSIDE = [
    *("../x", "a/../../x", "/etc/passwd", "..", "./../x", "a/b/../../../x", "//etc/passwd", "/", "/proc/self/root/etc"),
    *("~/x", "~root/x", "~", "C:\\x", "c:/x", "\\\\host\\x", "file://x", "https://x/y"),
]
INVALID = ["", " ", ".", "./", "a/", "x" * 256, "a/" * 2_500 + "x", "a\0b", "\ud800", "./."]
DECEPTIVE = [
    "new\nline",
    "evil\u202etxt.exe",
    "trailing ",
    " leading",
    "tab\there",
    "dir /x",
    "bell\a",
    "line\u2028end",
]
ARGS: dict[str, dict[str, str]] = {
    "read_file": {},
    "read_json": {},
    "write_file": {"content": "x"},
    "edit_file": {"oldText": "", "newText": "x"},
    "create_directory": {},
    "delete_file": {},
}
PROTECTED = [
    *(
        ".git/hooks/pre-commit",
        ".git/config",
        ".GIT/hooks/x",
        "sub/.git/config",
        ".env",
        ".ENV",
        ".env.local",
        ".envrc",
    ),
    *(".bashrc", ".profile", ".zshrc", ".bash_profile", ".ssh/authorized_keys", ".github/workflows/ci.yml"),
    *(".gitlab-ci.yml", "Jenkinsfile", ".vscode/tasks.json", ".husky/pre-commit", ".npmrc", ".netrc", ".pypirc"),
    *("AGENTS.md", "agents.md", ".gitmodules", ".pre-commit-config.yaml", ".mcp.json", "sitecustomize.py"),
]


@pytest.mark.parametrize("tool", ARGS)
async def test_no_tool_follows_a_path_out(attempts: Attempts, tool: str) -> None:
    for path in OUTSIDE:
        expected = {"PATH_OUTSIDE"} | ({"NOT_FOUND"} if path == "/" else set())
        assert await attempts.code(tool, path=path, **ARGS[tool]) in expected, path
    assert list(attempts.workspace.iterdir()) == []


@pytest.mark.parametrize("tool", [name for name in ARGS if name != "create_directory"])
async def test_no_tool_takes_what_is_no_name(attempts: Attempts, tool: str) -> None:
    for path in INVALID:
        assert await attempts.code(tool, path=path, **ARGS[tool]) == "PATH_INVALID", path
    assert list(attempts.workspace.iterdir()) == []


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "create_directory"])
async def test_no_tool_makes_a_name_that_deceives_the_eye(attempts: Attempts, tool: str) -> None:
    for path in DECEPTIVE:
        assert await attempts.code(tool, path=path, **ARGS[tool]) == "PATH_INVALID", path
    assert list(attempts.workspace.iterdir()) == []


async def test_a_deceptive_name_that_exists_may_be_used(attempts: Attempts) -> None:
    (attempts.workspace / "trailing ").write_text("here")
    assert await attempts.value("read_file", path="trailing ") == "here"
    await attempts.run("write_file", path="trailing ", content="there")
    error = await attempts.error("read_file", path="bad\u202ename\n")
    assert "\n" not in error.message
    assert "\\u202e" in error.message


async def test_a_sibling_that_shares_the_prefix_is_outside(attempts: Attempts) -> None:
    sibling = attempts.workspace.with_name(attempts.workspace.name + "-other")
    sibling.mkdir()
    (sibling / "x").write_text("secret")
    assert await attempts.code("read_file", path=str(sibling / "x")) == "PATH_OUTSIDE"


async def test_an_absolute_path_inside_is_fine(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("here")
    result = await attempts.run("read_file", path=str(attempts.workspace / "x"))
    assert (result.value, list(result.read)) == ("here", ["x"])


async def test_a_workspace_behind_a_link_is_the_workspace(attempts: Attempts) -> None:
    link = attempts.workspace.with_name("link")
    link.symlink_to(attempts.workspace)
    await attempts.but(workspace=link).run("write_file", path=str(link / "x"), content="y")
    assert (attempts.workspace / "x").read_text() == "y"


@pytest.mark.parametrize("tool", [name for name in ARGS if name != "delete_file"])
async def test_links_out_are_refused(attempts: Attempts, tool: str) -> None:
    outside = attempts.workspace.with_name("outside")
    outside.mkdir()
    (outside / "x").write_text("secret")
    files = {
        "file": outside / "x",
        "up": Path("../outside/x"),
        "new": outside / "y",
        "proc": Path("/proc/self/root/etc"),
    }
    for name, target in files.items():
        (attempts.workspace / name).symlink_to(target)
        assert await attempts.code(tool, path=name, **ARGS[tool]) == "PATH_OUTSIDE", name
    for name, link_target in {"dir": outside, "dots": Path("../outside")}.items():
        (attempts.workspace / name).symlink_to(link_target)
        assert await attempts.code(tool, path=f"{name}/x", **ARGS[tool]) == "PATH_OUTSIDE", name
    (attempts.workspace / "chain").symlink_to("file")
    (attempts.workspace / "ring").symlink_to("ring")
    assert await attempts.code(tool, path="chain", **ARGS[tool]) == "PATH_OUTSIDE"
    assert await attempts.code(tool, path="ring", **ARGS[tool]) == "PATH_OUTSIDE"
    assert sorted(path.name for path in outside.iterdir()) == ["x"]
    assert (outside / "x").read_text() == "secret"


async def test_links_that_stay_inside_are_followed(attempts: Attempts) -> None:
    (attempts.workspace / "real").mkdir()
    (attempts.workspace / "real" / "x").write_text("old")
    (attempts.workspace / "dir").symlink_to("real")
    (attempts.workspace / "file").symlink_to(attempts.workspace / "real" / "x")
    (attempts.workspace / "real" / "up").symlink_to("../real/x")
    for path in ("dir/x", "file", "dir/up"):
        assert await attempts.value("read_file", path=path) == "old"
    await attempts.run("write_file", path="file", content="new")
    assert (attempts.workspace / "real" / "x").read_text() == "new"
    assert (attempts.workspace / "file").is_symlink()


async def test_deleting_a_link_leaves_what_it_points_to(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("kept")
    (attempts.workspace / "link").symlink_to("x")
    await attempts.run("delete_file", path="link")
    assert [path.name for path in attempts.workspace.iterdir()] == ["x"]


@pytest.mark.parametrize("path", PROTECTED)
async def test_protected_files_are_written_only_with_approval(attempts: Attempts, path: str) -> None:
    asking = attempts.but(approved=False)
    error = await asking.error("write_file", path=path, content="x")
    assert error.type == "APPROVAL_REQUIRED"
    assert error.non_retryable
    assert path in error.message
    assert await asking.code("edit_file", path=path, oldText="", newText="x") == "APPROVAL_REQUIRED"
    assert list(attempts.workspace.iterdir()) == []
    await attempts.run("write_file", path=path, content="x")
    assert (attempts.workspace / path).read_text() == "x"
    assert await asking.code("edit_file", path=path, oldText="x", newText="y") == "APPROVAL_REQUIRED"
    assert await asking.value("read_file", path=path) == "x"


async def test_protection_sees_through_links_and_other_spellings(attempts: Attempts) -> None:
    asking = attempts.but(approved=False)
    (attempts.workspace / ".git" / "hooks").mkdir(parents=True)
    (attempts.workspace / ".git" / "config").write_text("x")
    (attempts.workspace / "innocent").symlink_to(".git")
    (attempts.workspace / "notes.txt").symlink_to(".git/config")
    (attempts.workspace / "start.txt").symlink_to(".bashrc")
    for path in ("innocent/hooks/x", "notes.txt", "start.txt", "a/../.git/config", ".git./hooks/x", "./.GiT/config"):
        assert await asking.code("write_file", path=path, content="y") == "APPROVAL_REQUIRED", path
    assert (attempts.workspace / ".git" / "config").read_text() == "x"


async def test_harmless_look_alikes_need_no_approval(attempts: Attempts) -> None:
    for path in (".env.example", "git/config", "environment", ".gitignore", "docs/agents.txt", "github/workflows/x"):
        await attempts.but(approved=False).run("write_file", path=path, content="x")


async def test_only_regular_files_are_read_or_written(attempts: Attempts) -> None:
    (attempts.workspace / "dir").mkdir()
    os.mkfifo(attempts.workspace / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(attempts.workspace / "sock"))
    kinds = ["dir", "fifo", "sock"]
    if os.geteuid() == 0:
        os.mknod(attempts.workspace / "zero", 0o20600, os.makedev(1, 5))
        kinds.append("zero")
    for name in kinds:
        for tool in ("read_file", "write_file", "edit_file"):
            args = {"oldText": "a", "newText": "b"} if tool == "edit_file" else ARGS[tool]
            assert await attempts.but(timeout=60.0).code(tool, path=name, **args) == "NOT_REGULAR", (tool, name)


async def test_a_file_with_a_second_name_is_not_written(attempts: Attempts) -> None:
    other = attempts.workspace.with_name("elsewhere")
    other.write_text("kept")
    (attempts.workspace / "x").hardlink_to(other)
    assert await attempts.code("write_file", path="x", content="y") == "NOT_REGULAR"
    assert await attempts.code("edit_file", path="x", oldText="kept", newText="y") == "NOT_REGULAR"
    assert await attempts.value("read_file", path="x") == "kept"
    assert other.read_text() == "kept"


async def test_a_workspace_that_is_gone_is_named(attempts: Attempts, tmp_path: Path) -> None:
    error = await attempts.but(workspace=tmp_path / "gone").error("read_file", path="x")
    assert error.type == "NOT_FOUND"
    assert "workspace" in error.message


@pytest.fixture
def swapped(workspace: Path, tmp_path: Path) -> Iterator[Path]:
    """A directory outside; meanwhile `dir` in the workspace and a link to it change places all the time."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("secret")
    (workspace / "dir").mkdir()
    (workspace / "dir" / "x").write_text("inside")
    (workspace / "link").symlink_to(outside)
    stop = threading.Event()
    attacker = threading.Thread(target=swap, args=(str(workspace / "dir"), str(workspace / "link"), stop))
    attacker.start()
    yield outside
    stop.set()
    attacker.join()


def test_a_directory_swapped_for_a_link_never_leads_outside(workspace: Path, swapped: Path) -> None:
    inside, refused = Workspace(str(workspace)), 0
    for number in range(2_000):
        try:
            with inside.file("dir/x") as place:
                assert read_bytes(place) != b"secret"
            with inside.file(f"dir/new{number % 20}") as place:
                write_beside(place, f"temporary{number}", [b"new"])
                os.rename(f"temporary{number}", place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
        except ToolError as error:
            assert error.code in ("PATH_OUTSIDE", "NOT_REGULAR"), error  # noqa: PT017
            refused += 1
    assert refused
    assert [path.name for path in swapped.iterdir()] == ["x"]
    assert (swapped / "x").read_text() == "secret"


def test_the_same_attack_beats_a_check_of_the_path_before_it_is_opened(workspace: Path, swapped: Path) -> None:
    path, deadline = workspace / "dir" / "x", time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(OSError):  # the check itself may stumble over the swap
            if path.resolve().is_relative_to(workspace.resolve()) and path.read_text() == "secret":
                return
    pytest.fail("the attack does not work, so the test of the defence proves nothing")


def swap(one: str, other: str, stop: threading.Event) -> None:
    """Let two names change places, at once and again and again (renameat2 with RENAME_EXCHANGE)."""
    renameat2 = ctypes.CDLL(None).renameat2
    while not stop.is_set():
        assert renameat2(-100, one.encode(), -100, other.encode(), 2) == 0
