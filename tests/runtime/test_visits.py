"""Walks through messages of workflow tasks are left out only where they would leave every payload as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.bridge import worker as bridge
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import DataConverter, PayloadCodec, StorageDriverStoreContext

from plansurvive.features.keys.codec import ENCRYPTED
from plansurvive.runtime.connect import storage
from plansurvive.runtime.conversion import visits
from plansurvive.runtime.conversion.payloads import OnePayloadConverter, json_payload
from plansurvive.runtime.feature import sealing_of
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory, converter
from tests.features.keys.rings import key, ring_file

LIMIT = 1_000
SHORT, LONG = json_payload(b'"a"'), json_payload(b'"%s"' % (b"a" * LIMIT))
LIMITS = {"storage_concurrency_limit": 1}


class Reversing(PayloadCodec):
    """Stands for encryption: payloads are others on the way."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=each.metadata, data=each.data[::-1]) for each in payloads]

    decode = encode


@pytest.fixture
def directory(tmp_path: Path) -> LocalDirectory:
    return LocalDirectory(tmp_path / "values")


@pytest.fixture
def ours(directory: LocalDirectory) -> DataConverter:
    return converter(directory, LIMIT)


def activation(*results: Payload) -> WorkflowActivation:
    found = WorkflowActivation(run_id="a")
    for number, each in enumerate(results):
        found.jobs.add().resolve_activity.result.completed.result.CopyFrom(each)
        found.jobs[number].resolve_activity.seq = number
    return found


def completion(*arguments: Payload) -> WorkflowActivationCompletion:
    found = WorkflowActivationCompletion(run_id="a")
    found.successful.SetInParent()
    for each in arguments:
        found.successful.commands.add().schedule_activity.arguments.append(each)
    return found


def failed(details: Payload) -> WorkflowActivationCompletion:
    found = WorkflowActivationCompletion(run_id="a")
    found.failed.failure.encoded_attributes.CopyFrom(details)
    return found


async def decoded(message: Any, with_: DataConverter) -> Any:
    await bridge.decode_activation(message, with_, decode_headers=False, **LIMITS)
    return message


async def encoded(message: Any, with_: DataConverter) -> Any:
    await bridge.encode_completion(message, with_, encode_headers=False, **LIMITS)
    return message


@pytest.fixture(autouse=True, scope="module")
def installed() -> None:
    visits.install()


def test_the_functions_of_this_version_of_the_sdk_are_replaced_once() -> None:
    found = [bridge.decode_activation, bridge.encode_completion]
    assert {each.__module__ for each in found} == {visits.__name__}
    visits.install()
    assert [bridge.decode_activation, bridge.encode_completion] == found


async def test_what_is_stored_is_retrieved_and_the_same_again(ours: DataConverter) -> None:
    sent = await encoded(completion(SHORT, LONG, SHORT), ours)
    arguments = [each.schedule_activity.arguments[0] for each in sent.successful.commands]
    assert [each.ByteSize() < LIMIT for each in arguments] == [True, True, True]
    assert arguments[::2] == [SHORT, SHORT]
    assert arguments[1] != LONG
    assert await decoded(activation(*arguments), ours) == activation(SHORT, LONG, SHORT)


async def test_a_reference_in_the_older_form_is_retrieved(ours: DataConverter, directory: LocalDirectory) -> None:
    claim = (await directory.store(StorageDriverStoreContext(), [LONG]))[0]
    claimed = {"driver_name": directory.name(), "driver_claim": {"claim_data": claim.claim_data}}
    older = json_payload(json.dumps(claimed).encode())
    older.metadata["encoding"] = b"json/external-storage-reference"
    assert await decoded(activation(older), ours) == activation(LONG)


@pytest.mark.parametrize("message", [completion(), completion(SHORT), completion(*[SHORT] * 200), failed(SHORT)])
async def test_a_short_completion_is_left_as_it_is_and_so_it_is_by_the_sdk(message: Any, ours: DataConverter) -> None:
    assert visits.stores_nothing(message, ours) is (message.ByteSize() < LIMIT or message.HasField("successful"))
    assert await encoded(deepcopy(message), ours) == message


@pytest.mark.parametrize(
    ("message", "look"),
    [
        (activation(SHORT), visits.refers_to_nothing),
        (completion(SHORT), visits.stores_nothing),
    ],
)
async def test_only_our_converter_without_a_codec_is_spared(
    message: Any, look: Callable[[Any, DataConverter], bool], ours: DataConverter
) -> None:
    storage = ours.external_storage
    assert look(message, ours)
    assert look(message, DataConverter(OnePayloadConverter))
    assert not look(message, DataConverter(external_storage=storage))
    assert not look(message, DataConverter(OnePayloadConverter, Reversing(), external_storage=storage))


@pytest.mark.uses("keys")
async def test_a_process_is_spared_unless_it_has_keys(tmp_path: Path) -> None:
    environ = {"PLANS_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)}
    plain = converter_of(environ)
    assert visits.stores_nothing(completion(SHORT), plain)
    assert visits.refers_to_nothing(activation(SHORT), plain)
    assert not visits.refers_to_nothing(activation(Payload(metadata={"encoding": ENCRYPTED})), plain)
    encrypting = converter_of(environ | {"PLANS_KEYS": str(ring_file(tmp_path / "ring", key()))})
    assert not visits.stores_nothing(completion(SHORT), encrypting)
    assert not visits.refers_to_nothing(activation(SHORT), encrypting)


def converter_of(environ: dict[str, str]) -> DataConverter:
    """That of a process with these variables."""
    settings = Settings.read(environ)
    return converter(storage(settings), settings.external_bytes, sealing_of(settings))


async def test_a_codec_sees_every_payload() -> None:
    with_codec = DataConverter(OnePayloadConverter, Reversing())
    sent = await encoded(completion(json_payload(b'"ab"')), with_codec)
    assert sent.successful.commands[0].schedule_activity.arguments[0].data == b'"ba"'
    assert await decoded(activation(json_payload(b'"ba"')), with_codec) == activation(json_payload(b'"ab"'))
