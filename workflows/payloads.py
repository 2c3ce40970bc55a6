"""JSON texts as payloads: what is large is neither parsed nor serialised once more on its way."""

from __future__ import annotations

from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from plansurvive.plans.activity_io import STAYS

LARGE = 64 * 1024
"""Characters. A longer Run is carried as one JSON string: faster to parse, and too long to read in Temporal's UI."""


def of_json(text: str, *, stays: bool = False) -> RawValue:
    """JSON text as an argument of an activity or a workflow, sent without being parsed and serialised again.

    `stays`: of a local activity, whose arguments never leave the worker, so that a long one need not be stored.
    """
    payload = Payload(data=text.encode())
    payload.metadata["encoding"] = b"json/plain"  # given to the constructor, it would be merged in Python
    if stays:
        payload.metadata[STAYS] = b""
    return RawValue(payload)
