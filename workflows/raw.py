"""JSON texts as payloads: a value that is written out already is not made a value again to be sent."""

from __future__ import annotations

from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue


def of_json(text: str) -> RawValue:
    """What stands for the JSON text among the arguments of an activity or a workflow."""
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=text.encode()))
