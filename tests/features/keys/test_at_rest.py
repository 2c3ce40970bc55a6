"""What workers keep in the state directory: encrypted with keys, readable after a rotation and from before."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import xxhash

from plansurvive.activities.workspace.content_store import ContentStore
from plansurvive.activities.workspace.effect_log import Effect, EffectLog
from plansurvive.features.keys.sealing import Encrypting
from plansurvive.runtime.errors import KeyMissing
from tests.features.keys.rings import LONG_AGO, key, live, ring_file

CANARY = b"canary " * 20
DIGEST = xxhash.xxh3_128_hexdigest(CANARY)


@pytest.fixture
def rest(tmp_path: Path) -> Encrypting:
    return Encrypting(live(ring_file(tmp_path / "keys", key())))


def everything(directory: Path) -> bytes:
    """Names and contents of all files."""
    return b"".join(f"{path}".encode() + path.read_bytes() for path in directory.rglob("*") if path.is_file())


def test_contents_of_files_are_unreadable_and_their_names_tell_nothing(tmp_path: Path, rest: Encrypting) -> None:
    store = ContentStore(tmp_path / "contents", sealing=rest)
    assert store.keep(CANARY)
    held = everything(tmp_path / "contents")
    assert b"canary" not in held.replace(str(tmp_path).encode(), b"")
    assert DIGEST[2:].encode() not in held
    assert store.get(DIGEST) == CANARY


def test_without_keys_contents_and_names_are_as_they_are_which_is_the_control(tmp_path: Path) -> None:
    ContentStore(tmp_path / "contents").keep(CANARY)
    held = everything(tmp_path / "contents")
    assert CANARY in held
    assert DIGEST[2:].encode() in held


def test_contents_are_found_after_a_rotation_and_from_before_there_were_keys(tmp_path: Path) -> None:
    first, second = key(), key(LONG_AGO + timedelta(days=1))
    ring = live(ring_file(tmp_path / "keys", first))
    ContentStore(tmp_path / "contents").keep(b"before")
    store = ContentStore(tmp_path / "contents", sealing=Encrypting(ring))
    store.keep(CANARY)
    ring_file(tmp_path / "keys", first, second)
    store.keep(b"after")
    for content in (b"before", CANARY, b"after"):
        assert store.get(xxhash.xxh3_128_hexdigest(content)) == content


def test_a_content_that_was_changed_is_not_given_back(tmp_path: Path, rest: Encrypting) -> None:
    store = ContentStore(tmp_path / "contents", sealing=rest)
    store.keep(CANARY)
    [path] = [each for each in (tmp_path / "contents").rglob("*") if each.is_file()]
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert store.get(DIGEST) is None


def test_results_in_the_effect_log_are_encrypted(tmp_path: Path, rest: Encrypting) -> None:
    log, effect = EffectLog(tmp_path / "log", sealing=rest), Effect("p/r/s", "call")
    log.begin(effect)
    log.settle(effect, "done", {"value": CANARY.decode()})
    assert CANARY not in everything(tmp_path / "log")
    found = log.find("p/r/s")
    assert found
    assert found.value == {"value": CANARY.decode()}
    log.close()
    plain = EffectLog(tmp_path / "log", sealing=Encrypting())
    with pytest.raises(KeyMissing):
        plain.find("p/r/s")
    plain.close()


def test_results_from_before_there_were_keys_are_read(tmp_path: Path, rest: Encrypting) -> None:
    plain, effect = EffectLog(tmp_path / "log"), Effect("p/r/s", "call")
    plain.begin(effect)
    plain.settle(effect, "done", {"value": CANARY.decode()})
    plain.close()
    assert CANARY in everything(tmp_path / "log")
    log = EffectLog(tmp_path / "log", sealing=rest)
    found = log.find("p/r/s")
    assert found
    assert found.value == {"value": CANARY.decode()}
    log.close()
