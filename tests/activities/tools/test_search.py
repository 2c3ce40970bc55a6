"""Finding files by name."""

from __future__ import annotations

import os

import pytest

from plansurvive.activities.tools.search import MAX_ENTRIES, MAX_PARTS
from tests.activities.attempts import Attempts

FILES = ["a.py", "b.txt", "src/a.py", "src/deep/down/c.py", "src/deep/x.txt", ".hidden/d.py", "src/.e.py", "s[1].py"]


@pytest.fixture
def tree(attempts: Attempts) -> Attempts:
    """A workspace with files, and a link to a directory outside."""
    for name in FILES:
        path = attempts.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (attempts.workspace / "out").symlink_to("/")
    (attempts.workspace / "loop").symlink_to(".")
    return attempts


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "s[1].py"]),
        ("**/*.py", ["a.py", "s[1].py", "src/a.py", "src/deep/down/c.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/down/c.py"]),
        ("src/**", ["src/a.py", "src/deep/down/c.py", "src/deep/x.txt"]),
        ("**/deep/**/c.py", ["src/deep/down/c.py"]),
        ("*/a.py", ["src/a.py"]),
        (".*/*.py", [".hidden/d.py"]),
        ("**/.*.py", ["src/.e.py"]),
        ("?.txt", ["b.txt"]),
        ("[ab].*", ["a.py", "b.txt"]),
        ("**/**/**/**/**/**/**/**/*.none", []),
        ("nothing", []),
    ],
)
async def test_a_pattern_finds_files(tree: Attempts, pattern: str, found: list[str]) -> None:
    assert await tree.value("find_files", pattern=pattern) == found


async def test_a_pattern_of_too_many_names_is_refused(tree: Attempts) -> None:
    assert await tree.value("find_files", pattern="**/" * 1_300 + "a.py") == ["a.py", "src/a.py"]
    assert await tree.value("find_files", pattern="*/" * (MAX_PARTS - 1) + "x") == []
    assert await tree.code("find_files", pattern="**/a/" * 50 + "x") == "PATH_INVALID"


async def test_a_search_may_begin_further_down(tree: Attempts) -> None:
    assert await tree.value("find_files", pattern="**/*.txt", path="src") == ["src/deep/x.txt"]
    assert await tree.code("find_files", pattern="*", path="gone") == "NOT_FOUND"


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../*", "~/*"])
async def test_a_pattern_stays_inside(tree: Attempts, pattern: str) -> None:
    assert await tree.code("find_files", pattern=pattern) == "PATH_OUTSIDE"


async def test_a_pattern_must_be_one(tree: Attempts) -> None:
    assert await tree.code("find_files", pattern="") == "PATH_INVALID"


async def test_a_directory_is_listed_by_name_with_types_and_sizes(attempts: Attempts) -> None:
    (attempts.workspace / "b").write_text("123")
    (attempts.workspace / "a").mkdir()
    (attempts.workspace / "link").symlink_to("b")
    os.mkfifo(attempts.workspace / "z")
    listed = await attempts.value("list_directory")
    assert [(entry["name"], entry["type"]) for entry in listed] == [
        ("a", "directory"), ("b", "file"), ("link", "link"), ("z", "other"),
    ]  # fmt: skip
    assert [entry["size"] for entry in listed[:2]] == [0, 3]
    assert await attempts.value("list_directory", path="a") == []
    assert await attempts.code("list_directory", path="gone") == "NOT_FOUND"


async def test_a_name_that_is_no_text_does_not_spoil_the_list(attempts: Attempts) -> None:
    os.mknod(os.fsencode(attempts.workspace) + b"/bad\xff.txt")
    assert await attempts.value("find_files", pattern="*.txt") == [r"bad\xff.txt"]
    assert [entry["name"] for entry in await attempts.value("list_directory")] == [r"bad\xff.txt"]


@pytest.mark.slow
async def test_too_many_files_are_refused(attempts: Attempts) -> None:
    for number in range(MAX_ENTRIES + 1):
        os.mknod(attempts.workspace / str(number))
    assert await attempts.code("find_files", pattern="*") == "OUTPUT_LIMIT"
    assert await attempts.code("list_directory") == "OUTPUT_LIMIT"
