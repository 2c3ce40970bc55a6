"""What can never be read is told from what is out of reach: the first is refused, the second tried again."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import StorageDriverClaim, StorageDriverRetrieveContext, StorageDriverStoreContext

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.buckets import s3_driver
from plansurvive.runtime.storage import LocalDirectory, StorageError, StorageGone, converter
from tests.fuzz.shapes import UNDECODABLE
from tests.runtime.test_storage import bucket  # noqa: F401

RETRIEVE = StorageDriverRetrieveContext()
PAYLOAD = Payload(metadata={"encoding": b"json/plain"}, data=b"1")


def claim(where: str, key: str = "v0/d/sha256/x", digest: str = "0" * 64) -> StorageDriverClaim:
    return StorageDriverClaim({"bucket": where, "key": key, "hash_algorithm": "sha256", "hash_value": digest})


async def test_s3_tells_what_is_missing_from_what_is_out_of_reach(
    bucket: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = s3_driver(bucket)
    stored = (await driver.store(StorageDriverStoreContext(), [PAYLOAD]))[0]
    other_hash = StorageDriverClaim({**stored.claim_data, "hash_value": "0" * 64})
    foreign = [claim("other"), claim("!"), claim(bucket, "x" * 2_000)]
    for wrong in (claim(bucket), other_hash, StorageDriverClaim({}), StorageDriverClaim({"bucket": bucket}), *foreign):
        with pytest.raises(StorageError):
            await driver.retrieve(RETRIEVE, [wrong])
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(OSError, match="retrieve failed"):
        await s3_driver(bucket).retrieve(RETRIEVE, [stored])


async def test_a_directory_that_is_gone_may_be_back(tmp_path: Path) -> None:
    driver = LocalDirectory(tmp_path / "values")
    wanted = StorageDriverClaim({"sha256": hashlib.sha256(b"x").hexdigest()})
    with pytest.raises(StorageGone):
        await driver.retrieve(RETRIEVE, [wanted])
    driver.create()
    with pytest.raises(StorageError) as caught:
        await driver.retrieve(RETRIEVE, [wanted])
    assert not isinstance(caught.value, StorageGone)


@pytest.mark.parametrize("shape", UNDECODABLE)
async def test_clients_and_activities_are_never_given_a_stand_in(tmp_path: Path, shape: str) -> None:
    driver = LocalDirectory(tmp_path)
    with pytest.raises((PlanError, LookupError, RuntimeError, TypeError, ValueError)):
        await converter(driver).decode([UNDECODABLE[shape]])
