"""Messages to and from a server at a URL, by streamable HTTP.

Connections go to the address that was checked, as those of http_request: to public ones, to what PLANS_HTTP_ALLOW
names, and to what mcp.toml opens. The library follows redirects within the origin only. Answers are
limited in length, and compressed ones are refused, as a few bytes would become many. What goes wrong with one request
is told as its error, so that it does not end the others that are under way.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import anyio
import httpx
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from plansurvive.activities.network.address_policy import AddressPolicy
from plansurvive.activities.network.pinned_connections import PinnedTransport
from plansurvive.activities.network.tls import tls_context
from plansurvive.activities.values.errors import one_line
from plansurvive.features.tool_servers.flow import GONE, NOT_SENT, TOO_MUCH, Flow, most_of_message
from plansurvive.features.tool_servers.sieve import Sieve
from plansurvive.features.tool_servers.tool_server import ToolServer
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model.receivers import Receiver

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream

    from plansurvive.features.tool_servers.server_connection import Streams

CONNECT_SECONDS = 10.0
SHOWN = 300
_PORTS = {"http": 80, "https": 443}
_EVENTS = "text/event-stream"


class Web:
    """The messages of one server at a URL. A `Wire`."""

    def __init__(self, name: str, server: ToolServer, policy: AddressPolicy, auth: httpx2.Auth | None) -> None:
        self.problem: ToolError | None = None
        self.ended = asyncio.Event()
        self.sieve = Sieve()
        self._name, self._server, self._auth = name, server, auth
        self._policy = replace(policy, allowed=(*policy.allowed, *_named(server)))
        self._most = most_of_message(server.max_result)

    def last_words(self) -> str:
        """None: what a server at a URL logs is elsewhere."""
        return ""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        """The streams of a session, which is ended at the server afterwards."""
        arrived, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=self._server.timeout + 60, pool=None)
        client = _Client(
            transport=_Transport(self._policy, self._server.url, self._most),
            auth=self._auth,
            headers={"Accept-Encoding": "identity"},
            timeout=timeout,
            trust_env=False,
        )
        opened = streamable_http_client(self._server.url, http_client=client, max_sse_event_size=self._most)
        async with client, opened as (read, write), anyio.create_task_group() as group:
            group.start_soon(self._relay, read, arrived)
            try:
                yield reading, write  # type: ignore[misc]  # a stream that also notes in which context it is used
            finally:
                group.cancel_scope.cancel()
                arrived.close()
                reading.close()

    async def _relay(self, read: Any, arrived: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Pass messages on, and count them."""
        flow = Flow(self._name)
        try:
            async for message in read:
                flow.add()
                await arrived.send(self.sieve.passed(message))
        except ToolError as error:
            self.problem = error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the session has ended
        finally:
            arrived.close()
            self.ended.set()


class _Client(httpx2.AsyncClient):
    """The library's HTTP client. What cannot be authorized is an error of its request, and ends no other."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request."""
        from mcp.client.auth import OAuthFlowError

        try:
            return await super().send(request, **options)
        except (ToolError, OAuthFlowError) as error:
            response = _instead(502, NOT_SENT, getattr(error, "message", "") or f"no token could be had: {error}")
            response.request = request
            return response


class _Transport(httpx2.AsyncBaseTransport):
    """Requests of the library's HTTP client over connections that a policy allows."""

    def __init__(self, policy: AddressPolicy, url: str, most: int) -> None:
        verify = tls_context() if urlsplit(url).scheme == "https" else None
        self._inner, self._url, self._most = PinnedTransport(policy, verify), httpx2.URL(url), most

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = httpx.Request(
            request.method,
            str(request.url),
            headers=request.headers.raw,
            content=await request.aread(),
            extensions=dict(request.extensions),
        )
        try:
            return await self._answer(request, await self._inner.handle_async_request(sent))
        except ToolError as error:
            if error.code == "MCP_LIMIT":
                return _instead(502, TOO_MUCH, error.message)
            hint = "; or set `private = true` for this server in mcp.toml" if error.code == "ADDRESS_REFUSED" else ""
            return _instead(502, NOT_SENT, error.message + hint)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            return _instead(502, NOT_SENT, f"it cannot be reached: {one_line(str(error)) or type(error).__name__}")
        except httpx.HTTPError as error:
            return _instead(502, GONE, f"the connection failed: {one_line(str(error)) or type(error).__name__}")

    async def _answer(self, request: httpx2.Request, response: httpx.Response) -> httpx2.Response:
        """The response, with its body unless that is a stream of events."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        headers = [pair for pair in response.headers.raw if pair[0].lower() != b"content-length"]
        if response.headers.get("content-encoding", "identity").lower() not in ("identity", ""):
            await response.aclose()
            raise ToolError("MCP_LIMIT", "it answered with a compressed body, although none was asked for")
        if kind == _EVENTS and response.status_code < 400:
            return httpx2.Response(response.status_code, headers=headers, stream=_Events(response))
        body = await self._body(response)
        if response.status_code >= 400 and response.status_code != 404 and self._is_call(request, body):
            text = f"it answered {response.status_code}: {one_line(body[:SHOWN].decode('utf-8', 'replace'))}"
            code = NOT_SENT if response.status_code in (401, 403, 429, 503) else GONE
            others = [pair for pair in headers if pair[0].lower() != b"content-type"]
            body, headers = _error(code, text), [*others, (b"Content-Type", b"application/json")]
        return httpx2.Response(response.status_code, headers=headers, content=body)

    def _is_call(self, request: httpx2.Request, body: bytes) -> bool:
        """Whether a message was refused without an error of the protocol."""
        if request.method != "POST" or request.url != self._url:
            return False
        with suppress(ValueError, RecursionError):
            found = json.loads(body)
            return not (isinstance(found, dict) and isinstance(found.get("error"), dict))
        return True

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        try:
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > self._most:
                    raise ToolError("MCP_LIMIT", f"it sent a message of more than {self._most:,} bytes")
        finally:
            await response.aclose()
        return bytes(body)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Events(httpx2.AsyncByteStream):
    """The body of a response that is a stream of events."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx.HTTPError as error:
            raise httpx2.ReadError(one_line(str(error)) or type(error).__name__) from None

    async def aclose(self) -> None:
        await self._response.aclose()


class Bearer(httpx2.Auth):
    """Sends a token to one origin only."""

    def __init__(self, token: str, url: str) -> None:
        self._token, self._origin = token, _origin(httpx2.URL(url))

    def auth_flow(self, request: httpx2.Request) -> Any:
        """Add the token to a request."""
        if _origin(request.url) == self._origin:
            request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or _PORTS.get(url.scheme)


def _named(server: ToolServer) -> list[Receiver]:
    """What the operator opened for this server: an address, with its port, or a name in a private network.

    A name alone opens nothing: whoever owns it could have it lead to any address.
    """
    urls = [server.url, *([server.oauth.issuer] if server.oauth and server.oauth.issuer else [])]
    return [found for url in urls if (found := _opened(urlsplit(url), private=server.private))]


def _opened(url: SplitResult, *, private: bool) -> Receiver | None:
    host, port = str(url.hostname), url.port or _PORTS[url.scheme]
    try:
        address = ip_address(host)
    except ValueError:
        if host == "localhost":
            return Receiver.of(f"{host}:{port}")
        return Receiver.of(host) if private else None
    return Receiver.of(f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}")


def _instead(status: int, code: int, text: str) -> httpx2.Response:
    """An answer of ours in place of one that did not come."""
    return httpx2.Response(status, headers={"Content-Type": "application/json"}, content=_error(code, text))


def _error(code: int, text: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}).encode()
