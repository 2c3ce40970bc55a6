"""Reading, writing, editing, making and deleting: what they give back, refuse, and leave behind."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import xxhash

from plansurvive.plans.file_stamps import FileTracker, stamp_of
from tests.activities.attempts import Attempts


def names(directory: Path) -> list[str]:
    """What is in a directory, hidden files too."""
    return sorted(path.name for path in directory.iterdir())


async def test_read_file_gives_the_text_itself(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_bytes("one\r\ntwo ä\nthree".encode())
    result = await attempts.run("read_file", path="x")
    assert (result.value, list(result.read)) == ("one\r\ntwo ä\nthree", ["x"])


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [
        ("a\nb\nc\n", {"limit": 2}, "a\nb\n"),
        ("a\nb\nc\n", {"offset": 2}, "c\n"),
        ("a\nb\nc", {"offset": 1, "limit": 1}, "b\n"),
        ("a\nb\nc", {"offset": 2, "limit": 5}, "c"),
        ("a\nb\n", {"offset": 9}, ""),
        ("a\n", {"limit": 0}, ""),
        ("", {}, ""),
    ],
)
async def test_read_file_reads_some_lines(attempts: Attempts, text: str, args: dict[str, int], expected: str) -> None:
    (attempts.workspace / "x").write_text(text)
    assert await attempts.value("read_file", path="x", **args) == expected


@pytest.mark.parametrize("data", [b"a\0b", "text".encode("utf-16"), b"\xff\xfe", b"caf\xe9"])
async def test_what_is_no_text_is_not_read_or_edited(attempts: Attempts, data: bytes) -> None:
    (attempts.workspace / "x").write_bytes(data)
    assert await attempts.code("read_file", path="x") == "BINARY_FILE"
    assert await attempts.code("edit_file", path="x", oldText="a", newText="b") == "BINARY_FILE"
    assert (attempts.workspace / "x").read_bytes() == data


@pytest.mark.slow
async def test_a_huge_file_is_refused_without_reading_it_all(attempts: Attempts) -> None:
    with (attempts.workspace / "x").open("wb") as file:
        file.truncate(2 * 1024**3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert await attempts.code("read_file", path="x") == "FILE_TOO_LARGE"
    assert await attempts.code("edit_file", path="x", oldText="a", newText="b") == "FILE_TOO_LARGE"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024
    assert await attempts.code("write_file", path="y", content="x" * (17 * 1024 * 1024)) == "FILE_TOO_LARGE"
    assert names(attempts.workspace) == ["x"]


async def test_a_missing_file_is_named(attempts: Attempts) -> None:
    for tool in ("read_file", "read_json", "delete_file"):
        error = await attempts.error(tool, path="a/gone")
        assert (error.type, error.non_retryable) == ("NOT_FOUND", True)
        assert "'a/gone'" in error.message


async def test_a_file_as_a_directory_is_no_directory(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("")
    assert await attempts.code("read_file", path="x/y") == "NOT_REGULAR"
    assert await attempts.code("write_file", path="x/y", content="") == "NOT_REGULAR"
    assert await attempts.code("list_directory", path="x") == "NOT_REGULAR"


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, True]}, [], "text", 7])
async def test_read_json_gives_the_value(attempts: Attempts, value: Any) -> None:
    (attempts.workspace / "x").write_text("\ufeff" + json.dumps(value))
    assert await attempts.value("read_json", path="x") == value


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", "[1,]", "NaN", '{"a": 1} {}', "[" * 100_000])
async def test_read_json_says_what_is_no_json(attempts: Attempts, text: str) -> None:
    (attempts.workspace / "x").write_text(text)
    error = await attempts.error("read_json", path="x")
    assert (error.type, error.non_retryable) == ("BAD_JSON", True)


async def test_write_file_makes_the_file_and_its_directories(attempts: Attempts) -> None:
    result = await attempts.but(approved=False).run("write_file", path="a/b/x", content="ä\n")
    assert result.value == {"path": "a/b/x", "bytes": 3, "created": True}
    assert list(result.wrote) == ["a/b/x"]
    assert (attempts.workspace / "a/b/x").read_bytes() == "ä\n".encode()
    assert names(attempts.workspace / "a/b") == ["x"]


async def test_overwriting_a_file_the_run_has_not_seen_needs_approval(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("old")
    asking = attempts.but(approved=False)
    error = await asking.error("write_file", path="./x", content="new")
    assert (error.type, error.non_retryable) == ("APPROVAL_REQUIRED", True)
    assert (attempts.workspace / "x").read_text() == "old"
    assert await asking.value("write_file", path="x", content="old") == {"path": "x", "bytes": 3, "created": False}
    await asking.but(stamps={"x": stamp_of(b"old")}).run("write_file", path="./x", content="seen")
    assert (attempts.workspace / "x").read_text() == "seen"
    await attempts.run("write_file", path="x", content="approved")
    assert (attempts.workspace / "x").read_text() == "approved"


async def test_a_file_that_the_plan_owns_is_replaced_without_approval(attempts: Attempts) -> None:
    for name in ("mine.md", "other.md", "Makefile"):
        (attempts.workspace / name).write_text("old")
    asking = attempts.but(approved=False, owns=["mine.md", "out/**", "Makefile"])
    await asking.run("write_file", path="./mine.md", content="new")
    assert (attempts.workspace / "mine.md").read_text() == "new"
    assert await asking.code("write_file", path="other.md", content="new") == "APPROVAL_REQUIRED"
    error = await asking.error("write_file", path="Makefile", content="new")
    assert (error.type, "PATH_PROTECTED" in error.message) == ("APPROVAL_REQUIRED", True)
    assert await asking.code("delete_file", path="mine.md") == "APPROVAL_REQUIRED"


async def test_a_plan_owns_the_file_that_a_link_leads_to_not_the_link(attempts: Attempts) -> None:
    (attempts.workspace / "other.md").write_text("old")
    (attempts.workspace / "mine.md").symlink_to("other.md")
    (attempts.workspace / "out").mkdir()
    (attempts.workspace / "elsewhere").mkdir()
    (attempts.workspace / "elsewhere/a").write_text("old")
    (attempts.workspace / "out/linked").symlink_to("../elsewhere")
    asking = attempts.but(approved=False, owns=["mine.md", "out/**"])
    assert await asking.code("write_file", path="mine.md", content="new") == "APPROVAL_REQUIRED"
    assert await asking.code("write_file", path="out/linked/a", content="new") == "APPROVAL_REQUIRED"
    assert (attempts.workspace / "other.md").read_text() == "old"
    await asking.but(owns=["other.md"]).run("write_file", path="mine.md", content="new")
    assert (attempts.workspace / "other.md").read_text() == "new"


async def test_writing_keeps_the_permissions_of_the_file(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("#!/bin/sh\n")
    (attempts.workspace / "x").chmod(0o750)
    await attempts.run("write_file", path="x", content="#!/bin/sh\nexit 0\n")
    await attempts.run("edit_file", path="x", oldText="exit 0", newText="exit 1")
    assert (attempts.workspace / "x").stat().st_mode & 0o7777 == 0o750


async def test_a_reader_sees_the_old_content_or_the_new(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("old")
    with (attempts.workspace / "x").open() as reader:
        await attempts.run("write_file", path="x", content="new and longer")
        assert reader.read() == "old"


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_failed_write_leaves_the_old_file_and_nothing_else(attempts: Attempts, state_dir: Path) -> None:
    (attempts.workspace / "x").write_text("old")
    program = f"""
        import asyncio, resource
        from pathlib import Path
        from temporalio.exceptions import ApplicationError
        from plansurvive.activities.workspace.effect_log import Effect, Effects
        from plansurvive.runtime.storage import LocalDirectory
        from plansurvive.runtime.value_store import ValueStore
        from tests.activities.attempts import Attempts

        effects = Effects.at(Path({str(state_dir)!r}))
        effects.log.forget(Effect("none", "write"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        attempts = Attempts(Path({str(attempts.workspace)!r}), ValueStore(LocalDirectory("unused")), effects)
        for name in ("x", "new"):
            try:
                asyncio.run(attempts.run("write_file", path=name, content="n" * 100_000))
            except ApplicationError as error:
                print(error.type, error.non_retryable, error.message)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    rows = [
        f"NO_SPACE False File too large: '{name}'; free some space on the disk of the workspace"
        for name in ("x", "new")
    ]
    assert done.stdout.splitlines() == rows, done.stderr
    assert names(attempts.workspace) == ["x"]
    assert (attempts.workspace / "x").read_text() == "old"


async def test_what_a_killed_attempt_left_is_swept_by_the_next(attempts: Attempts) -> None:
    await attempts.run("write_file", path="x", content="old")
    mark = xxhash.xxh3_64_hexdigest(b"plan-p/s")
    (attempts.workspace / f".plans-{mark}-0123.tmp").write_text("half")
    (attempts.workspace / ".plans-another-0123.tmp").write_text("of another call")
    await attempts.but(again=True, step="s").run("write_file", path="x", content="new")
    assert names(attempts.workspace) == [".plans-another-0123.tmp", "x"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do anything")
async def test_no_permission_is_said(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("secret")
    (attempts.workspace / "x").chmod(0)
    assert await attempts.code("read_file", path="x") == "NO_PERMISSION"


async def test_edit_file_replaces_one_passage_and_shows_the_change(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("".join(f"line {number}\n" for number in range(1, 31)))
    result = await attempts.but(approved=False).run(
        "edit_file", path="x", oldText="line 20\nline 21", newText="line twenty\n"
    )
    assert (attempts.workspace / "x").read_text().splitlines()[18:22] == ["line 19", "line twenty", "", "line 22"]
    assert (result.value["created"], list(result.wrote)) == (False, ["x"])
    assert result.value["bytes"] == (attempts.workspace / "x").stat().st_size
    assert result.value["diff"].splitlines() == [
        "--- a/x", "+++ b/x", "@@ -17,8 +17,8 @@", " line 17", " line 18", " line 19",
        "-line 20", "-line 21", "+line twenty", "+", " line 22", " line 23", " line 24",
    ]  # fmt: skip


async def test_an_empty_old_text_makes_a_file_and_never_overwrites_one(attempts: Attempts) -> None:
    made = await attempts.value("edit_file", path="d/x", oldText="", newText="new\n")
    assert (made["created"], made["bytes"]) == (True, 4)
    assert "+new" in made["diff"]
    assert await attempts.code("edit_file", path="d/x", oldText="", newText="other") == "EXISTS"
    assert (attempts.workspace / "d/x").read_text() == "new\n"
    assert (await attempts.value("edit_file", path="empty", oldText="", newText=""))["created"]
    assert (attempts.workspace / "empty").read_text() == ""


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("def mein():", "x", "EDIT_NO_MATCH", "2: 'def main():'"),
        ("nothing like it at all", "x", "EDIT_NO_MATCH", "read_file"),
        ("pass", "x", "EDIT_NOT_UNIQUE", "lines 3, 5"),
        ("pass", "pass", "EDIT_NO_CHANGE", "same"),
        ("aa", "x", "EDIT_NOT_UNIQUE", "lines 6, 6"),
    ],
)
async def test_an_edit_that_cannot_be_made_says_where_to_look(
    attempts: Attempts, old: str, new: str, code: str, words: str
) -> None:
    text = "import x\ndef main():\n    pass\ndef other():\n    pass\naaa\n"
    (attempts.workspace / "x").write_text(text)
    error = await attempts.error("edit_file", path="x", oldText=old, newText=new)
    assert (error.type, error.non_retryable) == (code, True)
    assert words in error.message
    assert (attempts.workspace / "x").read_text() == text


async def test_editing_keeps_the_line_endings(attempts: Attempts) -> None:
    (attempts.workspace / "dos").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    await attempts.run("edit_file", path="dos", oldText="one\ntwo\n", newText="1\n2\n")
    assert (attempts.workspace / "dos").read_bytes() == b"1\r\n2\r\nthree\r\n"
    (attempts.workspace / "mixed").write_bytes(b"one\r\ntwo\nthree")
    await attempts.run("edit_file", path="mixed", oldText="one\r\n", newText="1\n")
    assert (attempts.workspace / "mixed").read_bytes() == b"1\ntwo\nthree"
    (attempts.workspace / "unix").write_bytes(b"\xef\xbb\xbfone\ntwo")
    await attempts.run("edit_file", path="unix", oldText="two", newText="2")
    assert (attempts.workspace / "unix").read_bytes() == b"\xef\xbb\xbfone\n2"


async def test_editing_a_missing_file_says_so(attempts: Attempts) -> None:
    assert await attempts.code("edit_file", path="gone", oldText="a", newText="b") == "NOT_FOUND"


async def test_a_later_attempt_finds_its_own_work_done(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("one two")
    (attempts.workspace / "gone").write_text("")
    calls: list[tuple[str, dict[str, str]]] = [
        ("edit_file", {"path": "x", "oldText": "two", "newText": "2"}),
        ("edit_file", {"path": "new", "oldText": "", "newText": "made"}),
        ("write_file", {"path": "y", "content": "z"}),
        ("create_directory", {"path": "d"}),
        ("delete_file", {"path": "gone"}),
    ]
    for tool, args in calls:
        await attempts.but(step=tool + args["path"]).run(tool, **args)
    before = names(attempts.workspace)
    for tool, args in calls:
        again = await attempts.but(again=True, step=tool + args["path"]).run(tool, **args)
        assert again.value["path"] == args["path"]
    assert names(attempts.workspace) == before
    assert (attempts.workspace / "x").read_text() == "one 2"


async def test_a_later_attempt_does_not_excuse_a_wrong_edit(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("something else")
    assert await attempts.but(again=True).code("edit_file", path="x", oldText="a b", newText="c") == "EDIT_NO_MATCH"
    assert await attempts.but(again=True).code("edit_file", path="x", oldText="", newText="c") == "EXISTS"


async def test_create_directory_makes_all_of_it_once(attempts: Attempts) -> None:
    first = await attempts.run("create_directory", path="a/b/c/")
    assert (first.value, list(first.wrote)) == ({"path": "a/b/c", "created": True}, ["a/b/c"])
    assert await attempts.value("create_directory", path="a/b/c") == {"path": "a/b/c", "created": False}
    assert await attempts.value("create_directory", path=".") == {"path": ".", "created": False}
    assert await attempts.value("create_directory", path="dots.") == {"path": "dots.", "created": True}
    (attempts.workspace / "file").write_text("")
    assert await attempts.code("create_directory", path="file") == "EXISTS"


async def test_delete_file_deletes_one_file_and_no_directory(attempts: Attempts) -> None:
    (attempts.workspace / "d").mkdir()
    (attempts.workspace / "d" / "x").write_text("")
    assert await attempts.value("delete_file", path="d/x") == {"path": "d/x"}
    error = await attempts.error("delete_file", path="d")
    assert error.type == "NOT_REGULAR"
    assert "run_command" in error.message
    assert (attempts.workspace / "d").is_dir()


async def test_in_a_plan_that_an_llm_wrote_a_read_does_not_let_it_replace_a_file_unasked(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("old")
    tracker = FileTracker()

    def drafted() -> Attempts:
        return attempts.but(approved=False, drafted=True, stamps=tracker.stamps)

    async def run(tool: str, **args: object) -> None:
        result = await drafted().run(tool, **args)
        for path, stamp in [*result.read.items(), *result.wrote.items()]:
            assert stamp is not None
            tracker.track_read(path, stamp)

    await run("read_file", path="x")
    error = await drafted().error("write_file", path="x", content="new")
    assert (error.type, "an LLM wrote this plan" in error.message) == ("APPROVAL_REQUIRED", True)
    await run("edit_file", path="x", oldText="old", newText="edited")
    assert await drafted().code("write_file", path="x", content="new") == "APPROVAL_REQUIRED"
    await attempts.but(approved=False, stamps=tracker.stamps).run("write_file", path="x", content="a person's plan")
    await run("write_file", path="own", content="1")
    await run("edit_file", path="own", oldText="1", newText="2")
    await run("read_file", path="own")
    await run("write_file", path="own", content="3")
    (attempts.workspace / "own").write_text("theirs")
    await run("read_file", path="own")
    assert await drafted().code("write_file", path="own", content="4") == "APPROVAL_REQUIRED"
    owner = drafted().but(owns=["own"])
    await owner.run("write_file", path="own", content="owned")
