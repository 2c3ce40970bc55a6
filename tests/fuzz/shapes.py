"""Payloads that no worker can decode, and values that are no message: what a hostile or mistaken client sends."""

from __future__ import annotations

import json
from typing import Any

from temporalio.api.common.v1 import Payload

REFERENCE = {"encoding": b"json/protobuf", "messageType": b"temporal.api.sdk.v1.ExternalStorageReference"}


def reference(claim: Any, driver: str = "plans-directory") -> Payload:
    """A reference to content in external storage."""
    return Payload(metadata=REFERENCE, data=json.dumps({"driverName": driver, "claimData": claim}).encode())


def encoded(encoding: bytes, data: bytes, **metadata: bytes) -> Payload:
    """A payload of any encoding."""
    return Payload(metadata={"encoding": encoding, **metadata}, data=data)


UNDECODABLE = {
    "missing content": reference({"sha256": "0" * 64}),
    "no digest": reference({"sha256": "../../etc/passwd"}),
    "no claim": reference({}),
    "claim of another shape": reference(["sha256"]),
    "unknown driver": reference({"sha256": "0" * 64}, driver="aws.s3driver"),
    "malformed reference": Payload(metadata=REFERENCE, data=b'{"driverName": '),
    "reference of an older SDK": encoded(b"json/external-storage-reference", b'{"a": 1}'),
    "marked as a reference": encoded(b"json/plain", b"{}", __temporal_external_storage_reference=b"true"),
    "unknown encoding": encoded(b"binary/encrypted", b"secret"),
    "encoding that is no text": encoded(b"\xff\xfe", b"secret"),
    "no encoding": Payload(data=b"{}"),
    "unknown message type": encoded(b"json/protobuf", b"{}", messageType=b"no.Such"),
    "broken protobuf": encoded(b"binary/protobuf", b"\xff\xff", messageType=b"temporal.api.common.v1.Payload"),
    "broken JSON": encoded(b"json/plain", b'{"stepId":'),
    "our own mark": encoded(b"plans/undecodable", b"x"),
}
"""By name."""

NO_MESSAGES = [
    True, 0, -1.5, "approve", [], [{}], {}, {"stepId": None}, {"stepId": 7}, {"stepId": ""}, {"stepId": "x" * 201},
    {"stepId": "gate", "approved": "yes"}, {"stepId": "gate", "by": ["ann"]}, {"stepId": "gate", "args": []},
    {"stepId": "gate", "version": "1"}, {"stepId": "gate", "unknown": 1}, {"edits": []}, {"edits": [{}]},
    {"edits": [{"op": "set"}]}, {"edits": [{"op": "remove", "stepId": {}}]}, {"action": "explode"}, {"by": {"a": 1}},
    {"paths": "all"}, {"since": -1}, {"limit": 10**30}, {"stepId": "gate", "comment": "x" * 300_000},
    {"stepId": "gate", "args": {"a" * 20_000: 1}}, {"feedback": "\u0000" * 20_001}, {"x" * 100_000: 1},
    {"edits": [{"op": "add", "step": {"id": "gate", "tool": "work", "args": {"n": "\ud800"}}}] * 50},
]  # fmt: skip
"""JSON that no handler accepts."""
