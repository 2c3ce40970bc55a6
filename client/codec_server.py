"""A codec server: shows the Temporal UI and the Temporal CLI the data that history only refers to.

    POST /decode {"payloads": [...]}  ->  the same with every reference replaced by what is stored
    POST /encode                      ->  as it came: what is sent to Temporal from there is small

It listens on 127.0.0.1 and answers browsers for the origins it is told alone, since whoever can ask it can read every
stored value. It changes nothing. A value that is missing, or too long for a browser, is shown as a note saying so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf import json_format
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.sdk.v1 import ExternalStorageReference
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
)

from plans.errors import PlanError

HOST = "127.0.0.1"
PORT = 8234
MAX_REQUEST = 64 * 1024 * 1024
MAX_SHOWN = 4 * 1024 * 1024
"""Bytes of one value that are shown: a browser has to draw them."""
_REFERENCE = ExternalStorageReference.DESCRIPTOR.full_name.encode()


class Decoder:
    """Turns references into what they refer to."""

    def __init__(self, driver: StorageDriver) -> None:
        self._driver = driver

    async def decode(self, payloads: Payloads) -> Payloads:
        """The payloads with stored data in the place of references, each on its own."""
        return Payloads(payloads=[await self._decode(payload) for payload in payloads.payloads])

    async def _decode(self, payload: Payload) -> Payload:
        if payload.metadata.get("messageType") == _REFERENCE:
            reference = json_format.Parse(payload.data, ExternalStorageReference(), ignore_unknown_fields=True)
            payload = await self._fetch(dict(reference.claim_data))
        return await self._with_value(payload)

    async def _with_value(self, payload: Payload) -> Payload:
        """What a step gave back, with its value where only the claim of a large one is."""
        if payload.metadata.get("encoding") != b"json/plain" or b'"claim"' not in payload.data:
            return payload
        data = json.loads(payload.data)
        large = data.get("large") if isinstance(data, dict) else None
        if not isinstance(large, dict) or not isinstance(large.get("claim"), dict):
            return payload
        value = await self._fetch(large["claim"])
        return _json(data | {"value": json.loads(value.data)})

    async def _fetch(self, claim: dict[str, str]) -> Payload:
        try:
            [found] = await self._driver.retrieve(StorageDriverRetrieveContext(), [StorageDriverClaim(claim)])
        except (PlanError, OSError) as error:
            return _json({"notShown": str(error), "claim": claim})
        if len(found.data) > MAX_SHOWN:
            return _json({"notShown": f"{len(found.data)} bytes; `plan show --json --full` prints it", "claim": claim})
        return found


class CodecServer(ThreadingHTTPServer):
    """The HTTP server around a Decoder."""

    daemon_threads = True

    def __init__(self, driver: StorageDriver, origins: Collection[str], port: int = PORT) -> None:
        super().__init__((HOST, port), _Handler)
        self.decoder, self.origins = Decoder(driver), frozenset(origins)

    @property
    def address(self) -> str:
        """What to give the UI or the CLI as codec endpoint."""
        return f"http://{HOST}:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CodecServer

    def do_OPTIONS(self) -> None:
        """What a browser asks first."""
        self._answer(HTTPStatus.NO_CONTENT if self._is_allowed() else HTTPStatus.FORBIDDEN, b"")

    def do_POST(self) -> None:
        """Decode, or give back."""
        length = self.headers.get("Content-Length", "")
        body = self.rfile.read(int(length)) if length.isdigit() and int(length) <= MAX_REQUEST else None
        path = self.path.partition("?")[0].rstrip("/")
        if body is None:
            self.close_connection = True
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"")
        elif not self._is_allowed():
            self._answer(HTTPStatus.FORBIDDEN, b"")
        elif path.endswith("/encode"):
            self._answer(HTTPStatus.OK, body)
        elif path.endswith("/decode"):
            self._decode(body)
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"")

    def _decode(self, body: bytes) -> None:
        try:
            asked = json_format.Parse(body, Payloads(), ignore_unknown_fields=True)
        except json_format.ParseError as error:
            self._answer(HTTPStatus.BAD_REQUEST, json.dumps({"message": str(error)}).encode())
            return
        found = asyncio.run(self.server.decoder.decode(asked))
        self._answer(HTTPStatus.OK, json_format.MessageToJson(found, indent=None).encode())

    def _is_allowed(self) -> bool:
        """Whether the caller is a program here, or a page of an origin we serve: no other page, under no other name."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        origin = self.headers.get("Origin")
        return host in (HOST, "localhost") and (origin is None or origin in self.server.origins)

    def _answer(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        origin = self.headers.get("Origin")
        if origin in self.server.origins:
            self.send_header("Access-Control-Allow-Origin", origin)
            self.send_header("Access-Control-Allow-Methods", "POST, OPTIONS")
            self.send_header("Access-Control-Allow-Headers", "Content-Type, X-Namespace, Authorization")
            self.send_header("Vary", "Origin")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed for every request."""


def _json(data: Any) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(data, ensure_ascii=False).encode())
