"""The key of a result: what makes it another one, and what does not; what differs is named."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.features.cache.entries import Entry, compared, same_files
from plansurvive.features.cache.keys import CallKey, call_key
from plansurvive.plans.file_stamps import stamp_of

SECRET, NOW = b"s" * 32, datetime(2026, 11, 22, tzinfo=UTC)


def key(**changes: Any) -> CallKey:
    """The key of a call, with something changed."""
    given: dict[str, Any] = {
        "secret": SECRET, "tool": ("read", "1"), "args": {"path": "a.txt", "lines": {"x": 1, "y": [2]}},
        "environment": {"PATH": "/bin"}, "patterns": None,
    }  # fmt: skip
    return call_key(**given | changes)


def entry(made: CallKey, **fields: Any) -> Entry:
    """What was kept of that call."""
    named = {"key": made.name, "tool": made.tool, "environment": made.environment, "arguments": made.arguments}
    return Entry(**named, plan_id="p", step_id="s", made=NOW, **fields)


@pytest.mark.parametrize(
    "changes",
    [
        {"tool": ("read", "2")}, {"tool": ("read2", "1")}, {"environment": {}}, {"environment": {"PATH": "/usr"}},
        {"patterns": []}, {"patterns": ["*.c"]}, {"secret": b"t" * 32}, {"args": {"path": "b.txt"}},
        {"args": {"path": "a.txt", "lines": {"x": 1, "y": ["2"]}}}, {"args": {}},
    ],
)  # fmt: skip
def test_whatever_a_result_depends_on_gives_another_key(changes: dict[str, Any]) -> None:
    assert key(**changes).name != key().name


def test_the_order_of_names_in_an_argument_gives_the_same_key() -> None:
    assert key(args={"lines": {"y": [2], "x": 1}, "path": "a.txt"}) == key()


def test_nothing_in_a_key_can_be_guessed_without_its_secret() -> None:
    """Neither the value of an argument, nor a plain hash of it in any usual spelling."""
    made = key(args={"password": "tr0ub4dor"})
    shown = json.dumps(made)
    spellings = (b"tr0ub4dor", b'"tr0ub4dor"', b'{"password":"tr0ub4dor"}', b'{"password": "tr0ub4dor"}')
    hashes = [hashlib.new(name, text).hexdigest() for text in spellings for name in ("md5", "sha1", "sha256")]
    assert not any(each in shown for each in ["tr0ub4dor", *hashes])
    assert key(args={"password": "tr0ub4dor"}, secret=b"u" * 32).arguments != made.arguments


def test_what_changed_is_named_and_counted() -> None:
    before, now = key(), key(tool=("read", "2"), args={"path": "b.txt", "new": 1}, environment={})
    reads = {f"in/{number}": stamp_of(b"old") for number in range(20)}
    note = compared(entry(before, reads=reads), now, {path: stamp_of(b"new") for path in reads})
    assert note.why == "changed"
    assert note.compared == "p/s"
    named = [(each.what, each.name) for each in note.differences]
    assert named[:5] == [
        ("tool", ""), ("environment", ""), ("argument", "path"), ("argument", "lines"), ("argument", "new"),
    ]  # fmt: skip
    assert (len(named), note.more) == (10, 15)
    assert note.differences[5].before == stamp_of(b"old").hash[:16]
    assert note.differences[5].after == stamp_of(b"new").hash[:16]


def test_a_call_in_which_nothing_changed_has_no_differences() -> None:
    reads = {"a": stamp_of(b"x"), "b": None}
    assert compared(entry(key(), reads=reads), key(), reads).why == ""


def test_a_file_that_appears_or_disappears_is_a_change() -> None:
    assert not same_files({"a": None}, {"a": stamp_of(b"")})
    assert not same_files({"a": stamp_of(b"")}, {"a": None})
    assert not same_files({}, {"a": stamp_of(b"")})
    assert same_files({"a": None, "b": stamp_of(b"x")}, {"b": stamp_of(b"x"), "a": None})
