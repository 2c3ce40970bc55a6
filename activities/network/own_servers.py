"""The servers that a worker itself uses: Temporal, its UI and other ports, and the LLM's endpoint.

A plan that reaches them could read every plan, decide about itself, or use the model beyond its budget.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from plansurvive.activities.network.address_policy import Endpoint
from plansurvive.plans.model.receivers import Address
from plansurvive.runtime import server
from plansurvive.runtime.settings import Settings


def own_servers(settings: Settings, temporal: str) -> list[Endpoint]:
    """The endpoints as they are now. `temporal`: HOST:PORT of the server the worker is connected to. May block."""
    return [Endpoint(host, port, _addresses(host, port)) for host, port in dict.fromkeys(_ports(settings, temporal))]


def _ports(settings: Settings, temporal: str) -> Iterator[tuple[str, int]]:
    embedded = server.recorded(settings)  # it may have been started again, on other ports
    servers = list(dict.fromkeys([temporal, *([embedded.address] if embedded else [])]))
    for address in (*(f"//{each}" for each in servers), settings.openai_base_url):
        parts = urlsplit(address)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        if parts.hostname and port and not parts.hostname.endswith(".openai.com"):  # public: no need to resolve it
            yield parts.hostname, port
    if embedded is not None and embedded.ui:
        yield server.HOST, urlsplit(embedded.ui).port or server.UI_PORT
    yield server.HOST, server.UI_PORT
    for each in servers:
        for other in _beside(urlsplit(f"//{each}").port or 0):
            yield server.HOST, other


def _beside(port: int) -> set[int]:
    """The ports of this machine on which the process listens that listens on `port`: its UI, its HTTP interface."""
    import psutil

    with suppress(psutil.Error, OSError):
        found = {
            (each.pid, each.laddr.port)
            for each in psutil.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN and each.pid and each.laddr
        }
        processes = {pid for pid, listening in found if listening == port}
        return {listening for pid, listening in found if pid in processes}
    return set()


def _addresses(host: str, port: int) -> tuple[Address, ...]:
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(ip_address(str(each[4][0]).partition("%")[0]) for each in found))
    return ()
