"""Key rings: what is one, which key encrypts, and when a changed ring is noticed."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plansurvive.features.keys.live import RETRY_SECONDS, LiveRing
from plansurvive.features.keys.ring import BadRing, KeyRing, new_key, parse, written
from plansurvive.features.keys.source import CommandSource, FileSource, source_of
from plansurvive.runtime.errors import KeyMissing
from tests.features.keys.rings import LONG_AGO, key, live, ring_file
from tests.kit.waiting import until

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_a_ring_is_read_as_it_was_written() -> None:
    keys = [new_key(NOW, NOW + timedelta(hours=number)) for number in range(3)]
    assert parse("".join(map(written, reversed(keys)))).keys == tuple(keys)


def test_the_newest_key_whose_time_has_come_encrypts() -> None:
    first, second = new_key(NOW, NOW), new_key(NOW, NOW + timedelta(minutes=1))
    ring = parse(written(second) + written(first))
    assert ring.current(NOW) == first
    assert ring.current(NOW + timedelta(seconds=59)) == first
    assert ring.current(NOW + timedelta(seconds=60)) == second


def test_a_ring_whose_first_key_is_of_the_future_encrypts_nevertheless() -> None:
    early, late = new_key(NOW, NOW + timedelta(days=1)), new_key(NOW, NOW + timedelta(days=2))
    assert parse(written(late) + written(early)).current(NOW) == early


def test_nothing_that_is_shown_of_a_key_tells_the_secret() -> None:
    one = key()
    ring = KeyRing((one,))
    for text in (repr(one), repr(ring), one.id):
        assert one.secret.hex() not in text
        assert repr(one.secret) not in text


WRONG = {
    "empty": "",
    "another file": "[targets]\n",
    "no TOML": "[[key]]\nsecret = SECRETSECRETSECRET",
    "a key without a time": '[[key]]\nid = "20261122-00000000"\nsecret = "SECRETSECRETSECRET"\n',
    "a time without a zone": '[[key]]\nid = "a"\nsecret = "SECRETSECRETSECRET"\nfrom = 2026-11-22T18:00:00\n',
    "a short secret": '[[key]]\nid = "20261122-00000000"\nsecret = "SECRETSECRETSECRET"\nfrom = 2026-11-22T18:00:00Z\n',
    "a number": '[[key]]\nid = 1\nsecret = "SECRETSECRETSECRET"\nfrom = 2026-11-22T18:00:00Z\n',
    "no table": 'key = ["SECRETSECRETSECRET"]',
    "more than keys": "more = 1\n" + written(key()),
    "too large": "#" * 2_000_000,
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_what_is_no_ring_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(BadRing) as caught:
        parse(text)
    assert "SECRET" not in caught.value.message


def test_a_key_that_was_cut_off_or_renamed_is_noticed() -> None:
    text = written(key())
    for changed in (re.sub(r"-(.)", lambda m: "-" + ("1" if m[1] == "0" else "0"), text, count=1), text + text):
        with pytest.raises(BadRing):
            parse(changed)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_ring_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = ring_file(tmp_path / "keys", key())
    path.chmod(mode)
    with pytest.raises(BadRing, match="chmod 600"):
        FileSource(path).read()


def test_a_pipe_or_a_directory_is_no_ring(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing"):
        with pytest.raises(BadRing):
            FileSource(path).read()


def test_a_key_that_is_added_is_noticed_without_a_restart(tmp_path: Path) -> None:
    first, second = key(), key(LONG_AGO + timedelta(days=1))
    path = ring_file(tmp_path / "keys", first)
    ring = live(path)
    assert ring.current() == first
    ring_file(path, first, second)
    assert ring.current() == second
    assert ring.key(first.id) == first


def test_a_ring_that_becomes_unreadable_stays_in_use_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = key()
    path = ring_file(tmp_path / "keys", one)
    ring = live(path)
    path.write_text("[[key]]\nsecret = HALF")
    assert ring.current() == one
    path.unlink()
    assert ring.current() == one
    assert "stay in use" in caplog.text
    assert "HALF" not in caplog.text


@pytest.mark.parametrize("words", ["{}", "command:cat {}"])
async def test_an_unknown_key_id_is_looked_for_at_once(tmp_path: Path, words: str) -> None:
    first, second = key(), key()
    path = ring_file(tmp_path / "keys", first)
    ring = LiveRing(replace(source_of(words.format(path)), seconds=3_600.0))
    with pytest.raises(KeyMissing) as caught:
        ring.key(second.id)
    assert second.id in caught.value.message
    ring_file(path, first, second)

    def found() -> bool:
        try:
            return ring.key(second.id) == second
        except KeyMissing:
            return False

    await until(found, f"the ring is read again, of a command after {RETRY_SECONDS} s")


def test_the_output_of_a_command_is_a_ring(tmp_path: Path) -> None:
    one = key()
    path = ring_file(tmp_path / "keys", one)
    source = source_of(f"command:cat {path}")
    assert isinstance(source, CommandSource)
    assert LiveRing(source).current() == one


@pytest.mark.parametrize("words", [("/nowhere/at/all",), ("false",), ("echo", "SECRET")])
def test_a_command_that_prints_no_ring_is_refused_without_showing_its_output(words: tuple[str, ...]) -> None:
    with pytest.raises(BadRing) as caught:
        CommandSource(words).read()
    assert "SECRET" not in caught.value.message
