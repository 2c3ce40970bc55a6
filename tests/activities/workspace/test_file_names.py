"""Names of files as text: every name has one, which is valid Unicode and leads back to it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.activities.workspace.file_names import canonical, is_shown_as_bytes, native, visible
from plansurvive.activities.workspace.paths import parts_of
from tests.activities.attempts import Attempts

PIECES = st.sampled_from(
    [b"\\", b"x", b"5c", b"ff", b"\\x", b"\xff", b"\xc3", b"\xa9", b"\xed\xa0\x80", b"a", b"\n", b" "]
)
NAMES = st.lists(PIECES, min_size=1, max_size=12).map(b"".join) | st.binary(min_size=1, max_size=40).map(
    lambda data: data.replace(b"\0", b"").replace(b"/", b"") or b"x"
)


@given(NAMES)
def test_every_name_has_one_text_that_leads_back_to_it(data: bytes) -> None:
    name = os.fsdecode(data)
    text = visible(name)
    assert os.fsencode(native(text)) == data
    assert canonical(text) == text
    assert json.loads(json.dumps(text, ensure_ascii=False).encode()) == text
    assert is_shown_as_bytes(name) == (os.fsdecode(data) != data.decode("utf-8", "replace"))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_every_text_stands_for_a_name_whose_text_is_found(text: str) -> None:
    assert visible(native(text)) == canonical(text) == canonical(canonical(text))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x\xffy", r"x\xffy"),
        ("café".encode(), "café"),
        ("café".encode("latin-1"), r"caf\xe9"),
        (b"a\\b", r"a\b"),
        (b"a\\xffb", r"a\x5cxffb"),
        (b"a\\x41b", r"a\x41b"),
        (b"a\\x5cb", r"a\x5cx5cb"),
        (b"two\nlines", "two\nlines"),
    ],
)
def test_ordinary_names_are_shown_as_they_are(data: bytes, text: str) -> None:
    assert visible(os.fsdecode(data)) == text
    assert os.fsencode(native(text)) == data


def test_other_spellings_of_a_name_are_the_name() -> None:
    assert parts_of(r"caf\xc3\xa9/x", ()) == ("café", "x")
    assert parts_of(r"\xef\xbc\x8egit", ()) == ("\uff0egit",)


async def test_no_spelling_in_bytes_leads_past_what_is_asked(attempts: Attempts) -> None:
    asking = attempts.but(approved=False)
    for path in (r"\xef\xbc\x8egit/hooks/x", r".g\xe2\x80\x8cit/hooks/x", r"\xef\xbc\xadakefile"):
        assert await asking.code("write_file", path=path, content="x") == "APPROVAL_REQUIRED", path
    assert await asking.code("write_file", path=r"new\xff.txt", content="x") == "PATH_INVALID"
    assert await asking.code("write_file", path=r"\xff/../../x", content="x") == "PATH_OUTSIDE"
    assert list(attempts.workspace.iterdir()) == []


def odd(workspace: Path, name: bytes) -> Path:
    return workspace / os.fsdecode(name)


async def test_file_tools_work_on_a_file_whose_name_is_not_utf_8(attempts: Attempts) -> None:
    odd(attempts.workspace, b"d\xfe").mkdir()
    file = odd(attempts.workspace, b"d\xfe/x\xffy")
    file.write_text("old")
    (path,) = await attempts.value("find_files", pattern="**/*")
    assert path == r"d\xfe/x\xffy"
    assert [each["name"] for each in await attempts.value("list_directory", path=r"d\xfe")] == [r"x\xffy"]
    returned = await attempts.run("read_file", path=path)
    assert (returned.value, list(returned.read)) == ("old", [path])
    known = attempts.but(approved=False, stamps=returned.read)
    assert (await known.value("edit_file", path=path, oldText="old", newText="new"))["path"] == path
    assert await attempts.value("write_file", path=path, content="newer") == {
        "path": path,
        "bytes": 5,
        "created": False,
    }
    assert file.read_text() == "newer"
    odd(attempts.workspace, b"d\xfe/link").symlink_to(file.name)
    assert await attempts.value("read_file", path=r"d\xfe/link") == "newer"
    assert (await attempts.run("delete_file", path=path)).deleted == [path]
    assert [each.name for each in odd(attempts.workspace, b"d\xfe").iterdir()] == ["link"]
    assert await attempts.code("read_file", path=path) == "NOT_FOUND"


async def test_a_long_name_of_such_bytes_is_as_long_as_it_is(attempts: Attempts) -> None:
    os.mknod(odd(attempts.workspace, b"\xff" * 255))
    (path,) = await attempts.value("find_files", pattern="*")
    assert await attempts.value("read_file", path=path) == ""
    assert await attempts.code("read_file", path=path + "x") == "PATH_INVALID"
