"""Data too large for history: kept by content, proved when read, the same through a directory and through S3."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
    WorkflowSerializationContext,
)

from plansurvive.activities.values.results import keep
from plansurvive.plans.errors import ToolError
from plansurvive.plans.large_value import LargeValue
from plansurvive.runtime.buckets import s3_driver
from plansurvive.runtime.conversion.payloads import OnePayloadConverter
from plansurvive.runtime.storage import LocalDirectory, StorageError, converter
from plansurvive.runtime.value_store import ValueStore
from plansurvive.workflows.payloads import of_json
from tests.kit.s3_server import bucket as bucket

STORE, RETRIEVE = StorageDriverStoreContext(), StorageDriverRetrieveContext()


def payload(text: str) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=text.encode())


@pytest.fixture
def directory(tmp_path: Path) -> LocalDirectory:
    return LocalDirectory(tmp_path / "values")


async def test_what_is_stored_comes_back_and_the_same_content_is_one_file(directory: LocalDirectory) -> None:
    claims = await directory.store(STORE, [payload("a"), payload("b"), payload("a")])
    assert [item.data for item in await directory.retrieve(RETRIEVE, claims)] == [b"a", b"b", b"a"]
    assert len([path for path in directory.directory.rglob("*") if path.is_file()]) == 2


async def test_files_are_for_their_owner_only(directory: LocalDirectory) -> None:
    claim = (await directory.store(STORE, [payload("secret")]))[0]
    assert directory.path(claim.claim_data["sha256"]).stat().st_mode & 0o077 == 0


async def test_a_damaged_file_is_refused(directory: LocalDirectory) -> None:
    claim = (await directory.store(STORE, [payload("a")]))[0]
    directory.path(claim.claim_data["sha256"]).write_bytes(b"something else")
    with pytest.raises(StorageError, match="no longer has the content") as caught:
        await directory.retrieve(RETRIEVE, [claim])
    assert caught.value.code == "VALUE_CORRUPT"


async def test_a_missing_file_is_named_with_what_to_do(directory: LocalDirectory) -> None:
    with pytest.raises(StorageError, match="must share one") as caught:
        await directory.retrieve(RETRIEVE, [StorageDriverClaim({"sha256": "0" * 64})])
    assert caught.value.code == "VALUE_MISSING"


def test_one_converter_serves_all_payloads_where_the_driver_does_not_mind_whose_they_are(
    directory: LocalDirectory,
) -> None:
    of_plan = WorkflowSerializationContext(namespace="default", workflow_id="plan-a")
    whole = converter(directory)
    assert whole._with_contexts(of_plan, STORE) is whole  # what the SDK calls for every activity
    others = converter(s3_driver("s3://bucket"))
    assert others._with_contexts(of_plan, STORE) is not others


def test_what_a_payload_converter_has_learned_is_known_to_the_next() -> None:
    first, second = OnePayloadConverter(), OnePayloadConverter()
    assert [*first.converters.values()] == [*second.converters.values()]
    assert first.from_payloads([payload('{"sha256": "a", "bytes": 1, "preview": ""}')], [LargeValue])[0].bytes == 1


async def test_a_full_disk_leaves_nothing_behind() -> None:
    with pytest.raises(NotADirectoryError):
        await LocalDirectory("/dev/full/values").store(STORE, [payload("a")])


async def test_large_payloads_leave_history_and_small_ones_stay(directory: LocalDirectory) -> None:
    data = converter(directory, threshold=1_000)
    small, large = await data.encode(["x" * 10, "y" * 2_000])
    assert small.data == b'"xxxxxxxxxx"'
    assert len(large.data) < 500
    assert await data.decode([small, large]) == ["x" * 10, "y" * 2_000]


async def test_what_never_leaves_the_worker_is_not_stored(directory: LocalDirectory) -> None:
    data, text = converter(directory, threshold=1_000), f'"{"y" * 2_000}"'
    stays, leaves = await data.encode([of_json(text, stays=True)]), await data.encode([of_json(text)])
    assert (stays[0].data.decode(), len(leaves[0].data) < 500) == (text, True)
    assert await data.decode([*stays, *leaves]) == ["y" * 2_000] * 2
    mixed = await data.encode([of_json(text), of_json(text, stays=True), None, of_json(text)])
    assert [len(each.data) for each in mixed] == [len(leaves[0].data), len(text), 0, len(leaves[0].data)]
    assert await data.decode(mixed) == ["y" * 2_000, "y" * 2_000, None, "y" * 2_000]


async def test_values_of_steps_are_kept_by_the_same_driver(directory: LocalDirectory) -> None:
    values = ValueStore(directory)
    large = await values.put('{"rows": [1, 2]}')
    assert await values.get(large) == {"rows": [1, 2]}
    next(path for path in directory.directory.rglob("*") if path.is_file()).unlink()
    with pytest.raises(ToolError) as caught:
        await values.get(large)
    assert caught.value.code == "VALUE_MISSING"


async def test_s3_keeps_them_as_well(bucket: str) -> None:
    assert os.environ["AWS_ENDPOINT_URL"].startswith("http://127.0.0.1")
    driver = s3_driver(bucket)
    claims = await driver.store(STORE, [payload("a" * 100_000), payload("b")])
    assert [item.data for item in await driver.retrieve(RETRIEVE, claims)] == [b"a" * 100_000, b"b"]
    values = ValueStore(driver)
    assert await values.get(await values.put('["x"]')) == ["x"]


async def test_what_is_too_long_for_history_is_told_by_its_bytes(directory: LocalDirectory) -> None:
    values = ValueStore(directory, inline_bytes=10)
    assert await keep("12345678", values) == "12345678"
    for text in ("123456789", "ääääää"):
        large = await keep(text, values)
        assert isinstance(large, LargeValue)
        assert await values.get(large) == text
