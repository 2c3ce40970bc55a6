"""A codec server: lets the Temporal UI and the Temporal CLI show values that are stored outside the history.

    POST /decode {"payloads": [...]}  ->  the same payloads, decrypted, every reference replaced by the stored value
    POST /encode                      ->  encrypted if there are keys; else unchanged: what UI and CLI send is small

With keys, the address has a secret path, `Authorization: Bearer SECRET` is sent, or a person is recognised
(`admission.py`); nothing else is answered, as who can reach the port could read everything. It stores
nothing. It listens on 127.0.0.1, and answers browsers for the given origins alone, which it names; never `*`. A value
that is missing, or too large for a browser, is replaced by a note saying so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
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

from plansurvive.apps.codec.admission import Admission, Login
from plansurvive.features.keys.codec import Codec, is_encrypted
from plansurvive.plans.errors import PlanError

HOST = "127.0.0.1"
PORT = 8234
MAX_REQUEST = 64 * 1024 * 1024
"""Maximum bytes of a request body."""
MAX_SHOWN = 4 * 1024 * 1024
"""Maximum bytes of a value that is shown; a browser has to render it."""
HEADERS = "Content-Type, X-Namespace, Authorization, Authorization-Extras, Caller-Type, X-CSRF-TOKEN"
"""What the Temporal UI sends. Of these, only Authorization is read."""
_REFERENCE = ExternalStorageReference.DESCRIPTOR.full_name.encode()


class Decoder:
    """Decrypts payloads, and replaces references in them by the stored values."""

    def __init__(self, driver: StorageDriver, codec: Codec | None = None) -> None:
        self._driver, self.codec = driver, codec or Codec()

    async def decode(self, payloads: Payloads) -> Payloads:
        """The payloads with stored data in place of references; a missing value does not affect the others."""
        return Payloads(payloads=[await self._decode(payload) for payload in payloads.payloads])

    async def _decode(self, payload: Payload) -> Payload:
        if payload.metadata.get("messageType") == _REFERENCE:
            reference = json_format.Parse(payload.data, ExternalStorageReference(), ignore_unknown_fields=True)
            payload = await self._fetch(dict(reference.claim_data))
        return await self._with_value(await self._decrypted(payload))

    async def _decrypted(self, payload: Payload) -> Payload:
        if not is_encrypted(payload):
            return payload
        try:
            return (await self.codec.decode([payload]))[0]
        except PlanError as error:
            return _json({"notShown": f"{error.code}: {error.message}"})

    async def _with_value(self, payload: Payload) -> Payload:
        """A step's result with its value in place of the claim of a large value; any other payload unchanged."""
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

    def __init__(
        self,
        driver: StorageDriver,
        origins: Collection[str],
        port: int = PORT,
        codec: Codec | None = None,
        secret: str = "",
        login: Login | None = None,
    ) -> None:
        """`secret`: what a request may know; `login`: who else is answered. With neither, whoever reaches the port."""
        super().__init__((HOST, port), _Handler)
        self.decoder, self.origins, self.secret = Decoder(driver, codec), frozenset(origins), secret
        self.admission = Admission(secret, login)

    @property
    def address(self) -> str:
        """The URL to configure as codec endpoint in the UI or the CLI."""
        return f"http://{HOST}:{self.server_port}" + (f"/{self.secret}" if self.secret else "")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CodecServer

    def do_OPTIONS(self) -> None:
        """Answer a CORS preflight request."""
        self._answer(HTTPStatus.NO_CONTENT if self._is_allowed() else HTTPStatus.FORBIDDEN, b"")

    def do_POST(self) -> None:
        """Decode payloads, or return them unchanged (/encode)."""
        length = self.headers.get("Content-Length", "")
        body = self.rfile.read(int(length)) if length.isdigit() and int(length) <= MAX_REQUEST else None
        path = self.path.partition("?")[0].rstrip("/")
        if body is None:
            self.close_connection = True
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"")
        elif not self._is_allowed():
            self._answer(HTTPStatus.FORBIDDEN, b"")
        elif not self.server.admission.admits(path, self.headers.items(), str(self.client_address[0])):
            # 401 only where a fresh token of the UI could change that: it asks its issuer for one, and tries again.
            known = self.server.admission.login is not None
            self._answer(HTTPStatus.UNAUTHORIZED if known else HTTPStatus.FORBIDDEN, b"")
        elif path.endswith("/encode"):
            self._convert(body, self._encoded)
        elif path.endswith("/decode"):
            self._convert(body, self.server.decoder.decode)
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"")

    def _convert(self, body: bytes, convert: Callable[[Payloads], Awaitable[Payloads]]) -> None:
        try:
            payloads = json_format.Parse(body, Payloads(), ignore_unknown_fields=True)
        except json_format.ParseError as error:
            self._answer(HTTPStatus.BAD_REQUEST, json.dumps({"message": str(error)}).encode())
            return
        converted = asyncio.run(_awaited(convert(payloads)))
        self._answer(HTTPStatus.OK, json_format.MessageToJson(converted, indent=None).encode())

    async def _encoded(self, payloads: Payloads) -> Payloads:
        return Payloads(payloads=await self.server.decoder.codec.encode(payloads.payloads))

    def _is_allowed(self) -> bool:
        """Whether to answer: a local program or a page of an allowed origin, addressed by our own host name.

        Checking Host as well stops DNS rebinding: another site's name that resolves to 127.0.0.1.
        """
        host = self.headers.get("Host", "").rpartition(":")[0]
        origin = self.headers.get("Origin")
        return host in (HOST, "localhost") and (origin is None or origin in self.server.origins)

    def _answer(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        origin = self.headers.get("Origin")
        if origin in self.server.origins:
            self.send_header("Access-Control-Allow-Origin", origin)
            self.send_header("Access-Control-Allow-Methods", "POST, OPTIONS")
            self.send_header("Access-Control-Allow-Headers", HEADERS)
            if self.server.admission.login is not None:  # "Include cross-origin credentials": a proxy's cookie
                self.send_header("Access-Control-Allow-Credentials", "true")
            self.send_header("Vary", "Origin")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


async def _awaited(converted: Awaitable[Payloads]) -> Payloads:
    return await converted


def _json(data: Any) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(data, ensure_ascii=False).encode())
