"""The servers that a worker itself uses: Temporal, its UI and other ports, and the LLM's endpoint.

A plan that reaches them could read every plan, decide about itself, or use the model beyond its budget.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from activities.network.address_policy import Endpoint
from plans.definition.receivers import Address
from runtime import server
from runtime.settings import Settings


def own_servers(settings: Settings, temporal: str) -> list[Endpoint]:
    """The endpoints as they are now. `temporal`: HOST:PORT of the server the worker is connected to. May block."""
    return [Endpoint(host, port, _addresses(host, port)) for host, port in dict.fromkeys(_ports(settings, temporal))]


def _ports(settings: Settings, temporal: str) -> Iterator[tuple[str, int]]:
    for address in (f"//{temporal}", settings.openai_base_url):
        parts = urlsplit(address)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        if parts.hostname and port:
            yield parts.hostname, port
    embedded = server.recorded(settings)
    if embedded is not None:
        for address in (f"//{embedded.address}", embedded.ui or ""):
            parts = urlsplit(address)
            if parts.hostname and parts.port:
                yield parts.hostname, parts.port
        for port in _listening(embedded.pid):  # its HTTP interface has a port that nothing records
            yield server.HOST, port


def _listening(pid: int) -> list[int]:
    import psutil

    with suppress(psutil.Error):
        found = psutil.Process(pid).net_connections("inet")
        return [each.laddr.port for each in found if each.status == psutil.CONN_LISTEN]
    return []


def _addresses(host: str, port: int) -> tuple[Address, ...]:
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(ip_address(str(each[4][0]).partition("%")[0]) for each in found))
    return ()
