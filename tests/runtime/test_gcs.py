"""Google Cloud Storage: what is stored comes back, and what can never be read is told from what is out of reach."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage as google
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
    StorageDriverWorkflowInfo,
)

from plansurvive.runtime.buckets import gcs_driver
from plansurvive.runtime.connect import storage
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import StorageError
from plansurvive.runtime.value_store import ValueStore
from tests.features.keys.rings import key, ring_file
from tests.kit.gcs_server import gcs_bucket as gcs_bucket
from tests.kit.gcs_server import gcs_program as gcs_program

pytestmark = pytest.mark.slow
ANYONE = AnonymousCredentials()  # type: ignore[no-untyped-call]
STORE, RETRIEVE = StorageDriverStoreContext(), StorageDriverRetrieveContext()


def payload(text: str) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=text.encode())


def objects(bucket: str) -> list[google.Blob]:
    return list(google.Client(project="x", credentials=ANYONE).list_blobs(bucket))


async def test_what_is_stored_comes_back_and_the_same_content_is_one_object(gcs_bucket: str) -> None:
    driver = gcs_driver(gcs_bucket)
    claims = await driver.store(STORE, [payload("a"), payload("b"), payload("a")])
    assert [item.data for item in await driver.retrieve(RETRIEVE, claims)] == [b"a", b"b", b"a"]
    assert len(objects(gcs_bucket)) == 2
    assert (driver.name(), driver.type()) == ("plans-gcs", "plans.gcs"), "histories name the driver"
    values = ValueStore(driver, 10)
    large = await values.put('{"text": "' + "x" * 3_000_000 + '"}')
    assert len((await values.get(large))["text"]) == 3_000_000


async def test_equal_content_of_two_plans_stored_at_once_is_one_object(gcs_bucket: str) -> None:
    driver = gcs_driver(gcs_bucket)
    plans = [StorageDriverWorkflowInfo(namespace="default", type="PlanWorkflow", id=name) for name in ("a", "b")]
    stored = await asyncio.gather(
        *(driver.store(StorageDriverStoreContext(target=plan), [payload("x" * 100_000)]) for plan in plans * 4)
    )
    assert len({claim.claim_data["hash_value"] for (claim,) in stored}) == 1
    assert len(objects(gcs_bucket)) == 1


async def test_gcs_tells_what_is_missing_from_what_is_out_of_reach(
    gcs_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = gcs_driver(gcs_bucket)
    (stored,) = await driver.store(STORE, [payload("a")])
    for wrong in (
        {**stored.claim_data, "object_name": "v0/d/sha256/" + "0" * 64},
        {**stored.claim_data, "object_name": "../../other"},
        {**stored.claim_data, "object_name": ""},
        {**stored.claim_data, "hash_value": "0" * 64},
        {**stored.claim_data, "bucket": "other"},
        {**stored.claim_data, "bucket": "!"},
        {"bucket": gcs_bucket},
        {},
    ):
        with pytest.raises(StorageError):
            await driver.retrieve(RETRIEVE, [StorageDriverClaim(wrong)])
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    with pytest.raises(OSError, match="bucket=plans"):
        await gcs_driver(gcs_bucket, seconds=0.5).retrieve(RETRIEVE, [stored])


async def test_an_object_that_was_replaced_is_refused(gcs_bucket: str) -> None:
    driver = gcs_driver(gcs_bucket)
    (stored,) = await driver.store(STORE, [payload("a")])
    (blob,) = objects(gcs_bucket)
    assert blob.name.endswith(stored.claim_data["hash_value"])
    blob.upload_from_string(b"something else")
    with pytest.raises(StorageError) as caught:
        await driver.retrieve(RETRIEVE, [stored])
    assert caught.value.code == "VALUE_CORRUPT"


async def test_with_keys_a_bucket_holds_nothing_that_can_be_read(
    gcs_bucket: str, environ: dict[str, str], tmp_path: Path
) -> None:
    more = {"PLANS_STORAGE": f"gs://{gcs_bucket}", "PLANS_KEYS": str(ring_file(tmp_path / "keys", key()))}
    driver = storage(Settings.read(environ | more))
    claims = await driver.store(STORE, [payload("canary")])
    (blob,) = objects(gcs_bucket)
    assert b"canary" not in blob.download_as_bytes()
    assert [item.data for item in await driver.retrieve(RETRIEVE, claims)] == [b"canary"]
