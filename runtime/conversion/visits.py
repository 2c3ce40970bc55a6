"""Spares a worker the walks through messages that would leave every payload as it is.

The SDK walks through each activation three times (references, storage, codec) and through each completion three times,
with a coroutine or more for each payload: a tenth of a worker's CPU in a chain of steps. Where nothing is encrypted, an
activation that refers to nothing in the storage, and a completion whose commands are all shorter than what is stored,
come out as they went in. The SDK has no option for that, so `install` puts functions that look first in the place of
its two. They act for our payload converter alone, and call the SDK's for whatever they cannot rule out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from temporalio.bridge import worker as bridge
from temporalio.converter import DataConverter
from temporalio.converter._extstore import StorageOperationMetrics

from plansurvive.runtime.conversion.payloads import marks_of_decoded

_REFERENCE = b"xternal"
"""In every reference to a stored value, both as the SDK writes it (a message `ExternalStorageReference`) and as it once
did (the encoding `json/external-storage-reference`). What holds the word by chance costs the walks."""

_PARAMETERS = {
    "decode_activation": ["activation", "data_converter", "decode_headers", "storage_concurrency_limit"],
    "encode_completion": ["completion", "data_converter", "encode_headers", "storage_concurrency_limit"],
}
"""Of the SDK's functions; one of other parameters stays, as it may do other things."""


def install() -> None:
    """Replace the SDK's functions, once in a process."""
    _replace("decode_activation", refers_to_nothing)
    _replace("encode_completion", stores_nothing)


def refers_to_nothing(activation: Any, converter: DataConverter) -> bool:
    """Whether no payload of an activation is to be retrieved or decoded."""
    marks = marks_of_decoded(converter)
    if marks is None:
        return False
    message = activation.SerializeToString()
    return not any(mark in message for mark in (_REFERENCE, *marks))


def stores_nothing(completion: Any, converter: DataConverter) -> bool:
    """Whether no payload of a completion is to be encoded or stored."""
    if marks_of_decoded(converter) is None:
        return False
    storage = converter.external_storage
    if storage is None or completion.ByteSize() < storage.payload_size_threshold:
        return True
    # A failure of the workflow task is not looked into.
    return completion.HasField("successful") and all(
        each.ByteSize() < storage.payload_size_threshold for each in completion.successful.commands
    )


def _replace(name: str, is_needless: Callable[[Any, DataConverter], bool]) -> None:
    walk = vars(bridge).get(name)
    if walk is None or walk.__module__ == __name__ or [*inspect.signature(walk).parameters] != _PARAMETERS[name]:
        return

    async def look_first(message: Any, data_converter: DataConverter, **limits: Any) -> StorageOperationMetrics:
        if is_needless(message, data_converter):
            return StorageOperationMetrics()
        metrics: StorageOperationMetrics = await walk(message, data_converter, **limits)
        return metrics

    vars(bridge)[name] = look_first
