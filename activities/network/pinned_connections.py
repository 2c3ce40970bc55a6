"""HTTP connections to addresses that a policy chose. The name is resolved once, and the connection goes there.

Checking a name and then connecting to it by name would resolve it twice, and the second answer may be another one (DNS
rebinding). The certificate of an https server is checked for the name in the URL, as usual.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpcore
import httpx

from plansurvive.activities.network.address_policy import AddressPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_HTTPCORE = (
    *(httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol),
)
NEXT_ADDRESS = 5.0
"""Seconds until the next address of a host is tried."""


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host by this machine's resolver, which also understands 127.1, 0x7f.1 and 2130706433."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class PinnedTransport(httpx.AsyncBaseTransport):
    """httpx over connections that a policy allows. Raises ADDRESS_REFUSED, a ToolError, for the others."""

    def __init__(self, policy: AddressPolicy, verify: ssl.SSLContext | None) -> None:
        self._pool = httpcore.AsyncConnectionPool(ssl_context=verify, network_backend=_Backend(policy))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        with _as_httpx():
            response = await self._pool.handle_async_request(
                httpcore.Request(
                    request.method,
                    httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx.Response(
            response.status, headers=response.headers, stream=_Stream(response), extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Backend(httpcore.AsyncNetworkBackend):
    """Opens TCP connections to chosen addresses only. There are no Unix sockets."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy, self._look_up, self._inner = policy, policy.look_up or resolve, httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            found = await self._look_up(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the name {host!r} cannot be resolved: {error}") from error
        failure: Exception = httpcore.ConnectError(f"the name {host!r} has no address")
        chosen = await asyncio.to_thread(self._policy.choose, host, port, found) if found else []
        for address in chosen:
            limit = timeout if address == chosen[-1] else NEXT_ADDRESS
            try:
                return await self._inner.connect_tcp(address, port, limit, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Stream(httpx.AsyncByteStream):
    """The body of a response."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx():
            async for piece in self._response.aiter_stream():
                yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _as_httpx() -> Iterator[None]:
    """Errors of httpcore as those of httpx, which have the same names."""
    try:
        yield
    except _OF_HTTPCORE as error:
        kind = getattr(httpx, type(error).__name__, httpx.TransportError)
        raise kind(str(error)) from error
