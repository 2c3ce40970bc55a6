"""Encrypted payloads: unreadable without the key, the same again with it, and clear about which key is missing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.exceptions import ApplicationError

from plansurvive.features.keys.codec import ENCRYPTED, KEY_ID, Codec
from plansurvive.features.keys.sealing import Encrypting, plain_texts
from plansurvive.runtime.errors import KeyMissing, PlainRefused, Unauthentic
from plansurvive.runtime.storage import KEY_SECONDS, LocalDirectory, converter
from plansurvive.runtime.value_store import ValueStore
from tests.features.keys.rings import LONG_AGO, key, live, ring_file

SECRET = "the canary sings"


@pytest.fixture
def codec(tmp_path: Path) -> Codec:
    return Codec(live(ring_file(tmp_path / "keys", key())))


def converted(codec: Codec, tmp_path: Path, threshold: int = 65_536) -> Any:
    sealing = Encrypting(codec.ring, plain=codec.plain)
    return converter(LocalDirectory(tmp_path / "values", sealing), threshold, sealing)


async def test_a_payload_is_unreadable_and_comes_back_as_it_was(codec: Codec) -> None:
    plain = Payload(metadata={"encoding": b"json/plain", "more": b"canary"}, data=SECRET.encode())
    [encrypted] = await codec.encode([plain])
    assert b"canary" not in encrypted.SerializeToString()
    assert encrypted.metadata["encoding"] == ENCRYPTED
    assert await codec.decode([encrypted]) == [plain]


async def test_the_same_payload_never_looks_the_same_twice(codec: Codec) -> None:
    found = await codec.encode([Payload(data=b"yes")] * 100)
    assert len({each.data for each in found}) == 100


async def test_after_a_rotation_the_new_key_encrypts_and_the_old_one_still_decrypts(tmp_path: Path) -> None:
    first, second = key(), key(LONG_AGO + timedelta(days=1))
    codec = Codec(live(ring_file(tmp_path / "keys", first)))
    [before] = await codec.encode([Payload(data=b"a")])
    ring_file(tmp_path / "keys", first, second)
    [after] = await codec.encode([Payload(data=b"b")])
    assert [each.metadata[KEY_ID].decode() for each in (before, after)] == [first.id, second.id]
    assert [each.data for each in await codec.decode([before, after])] == [b"a", b"b"]


async def test_a_missing_key_is_named(codec: Codec, tmp_path: Path) -> None:
    other = key()
    [payload] = await Codec(live(ring_file(tmp_path / "other", other))).encode([Payload(data=b"a")])
    for reader, hint in ((codec, str(tmp_path / "keys")), (Codec(), "PLANS_KEYS is not set")):
        with pytest.raises(KeyMissing) as caught:
            await reader.decode([payload])
        assert other.id in caught.value.message
        assert hint in caught.value.message


async def test_whatever_is_changed_is_noticed(codec: Codec) -> None:
    [payload] = await codec.encode([Payload(data=SECRET.encode())])
    for place in range(len(payload.data)):
        changed = Payload.FromString(payload.SerializeToString())
        changed.data = changed.data[:place] + bytes([changed.data[place] ^ 1]) + changed.data[place + 1 :]
        with pytest.raises(Unauthentic):
            await codec.decode([changed])
    for short in (b"", payload.data[:20], payload.data[:-1], payload.data + b"x"):
        with pytest.raises(Unauthentic):
            await codec.decode([Payload(metadata=payload.metadata, data=short)])


async def test_what_was_sealed_is_no_payload_and_the_other_way_round(codec: Codec) -> None:
    sealed = Encrypting(codec.ring).sealed(Payload(data=b"a"))
    sealed.metadata["encoding"] = ENCRYPTED
    with pytest.raises(Unauthentic):
        await codec.decode([sealed])


async def test_plain_payloads_are_read_until_they_are_refused(codec: Codec) -> None:
    plain = Payload(data=b"of a plan that began before there were keys")
    assert await codec.decode([plain]) == [plain]
    with pytest.raises(PlainRefused):
        await Codec(codec.ring, plain=False).decode([plain])


async def test_messages_and_stacks_of_failures_are_encrypted(codec: Codec, tmp_path: Path) -> None:
    data_converter, failure = converted(codec, tmp_path), Failure()
    try:
        raise ApplicationError(f"message: {SECRET}", {"detail": SECRET}, type="CODE") from ValueError(SECRET)
    except ApplicationError as error:
        await data_converter.encode_failure(error, failure)
    assert SECRET.encode() not in failure.SerializeToString()
    again = await data_converter.decode_failure(failure)
    assert isinstance(again, ApplicationError)
    assert (again.message, again.details) == (f"message: {SECRET}", ({"detail": SECRET},))
    assert SECRET in str(again.__cause__)


async def test_a_step_whose_worker_lacks_a_key_is_tried_again_later(tmp_path: Path) -> None:
    data_converter, failure = converted(Codec(), tmp_path), Failure()
    error = ApplicationError("Failed decoding heartbeat details", non_retryable=True)  # so says the SDK
    error.__cause__ = KeyMissing.of("20261122-00000000", "", 0)
    await data_converter.encode_failure(error, failure)
    info = failure.application_failure_info
    assert (info.type, info.non_retryable, info.next_retry_delay.seconds) == ("KEY_MISSING", False, KEY_SECONDS)
    assert "20261122-00000000" in failure.cause.message


async def test_large_payloads_are_encrypted_in_storage_and_read_from_it(codec: Codec, tmp_path: Path) -> None:
    data_converter = converted(codec, tmp_path)
    payloads = await data_converter.encode([SECRET * 10_000])
    assert len(payloads[0].data) < 1_000
    [file] = [path for path in (tmp_path / "values").rglob("*") if path.is_file()]
    assert SECRET.encode() not in file.read_bytes()
    assert await data_converter.decode(payloads) == [SECRET * 10_000]


async def test_stored_values_are_sealed_once_and_read_after_a_rotation(tmp_path: Path) -> None:
    first, second = key(), key(LONG_AGO + timedelta(days=1))
    ring = live(ring_file(tmp_path / "keys", first))
    store = ValueStore(LocalDirectory(tmp_path / "values", Encrypting(ring)))
    large = await store.put(f'"{SECRET}"')
    assert await store.put(f'"{SECRET}"') == large
    [file] = [path for path in (tmp_path / "values").rglob("*") if path.is_file()]
    assert SECRET.encode() not in file.read_bytes()
    assert large.sha256 not in str(file)
    ring_file(tmp_path / "keys", first, second)
    assert await store.get(large) == SECRET
    assert (await store.put(f'"{SECRET}"')).claim != large.claim


async def test_values_stored_before_there_were_keys_are_read(tmp_path: Path, codec: Codec) -> None:
    large = await ValueStore(LocalDirectory(tmp_path / "values")).put('"old"')
    assert await ValueStore(LocalDirectory(tmp_path / "values", Encrypting(codec.ring))).get(large) == "old"


async def test_without_keys_nothing_is_encrypted_which_is_the_control(tmp_path: Path) -> None:
    data_converter, failure = converted(Codec(), tmp_path), Failure()
    [payload] = await data_converter.encode([SECRET])
    await data_converter.encode_failure(ApplicationError(SECRET), failure)
    await ValueStore(LocalDirectory(tmp_path / "values")).put(f'"{SECRET}"')
    stored = b"".join(path.read_bytes() for path in (tmp_path / "values").rglob("*") if path.is_file())
    assert all(SECRET.encode() in found for found in (payload.data, failure.SerializeToString(), stored))


async def test_what_is_encrypted_inside_a_failure_is_found_by_whoever_has_the_key(codec: Codec, tmp_path: Path) -> None:
    failure = Failure()
    await converted(codec, tmp_path).encode_failure(ApplicationError(SECRET, {"claim": "here"}), failure)
    inside = list(plain_texts(failure, codec.ring))
    assert any(SECRET.encode() in each for each in inside)
    assert any(b"here" in each for each in inside)
    with pytest.raises(KeyMissing):
        list(plain_texts(failure, None))
