"""The hosts of PLANS_HTTP_ALLOW: which entries there are, and whether a URL names one of them.

An entry is a host, `*.` and a domain, an address or a network (CIDR), each but the last with `:PORT` if only that port
is meant. Only URLs in plain form are compared: where two parsers could read different hosts, it is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from plansurvive.plans.model.identities import identity

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")
_PLAIN_URL = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(?:[/?#][!-\[\]-~]*)?")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Receiver:
    """One entry. Exactly one of `name` and `network` is set."""

    name: str = ""
    """A host in lower case, or `*.` and a domain."""
    network: Network | None = None
    port: int | None = None
    """None: every port."""

    @classmethod
    def of(cls, entry: str) -> Receiver:
        """Parse an entry. Raises ValueError, naming the forms."""
        host, port = _split(identity(entry.strip()))
        try:
            return cls(network=ip_network(host.strip("[]"), strict=False), port=port)
        except ValueError:
            pass
        name = host.removesuffix(".")
        if not _NAME.fullmatch(name) or name.rpartition(".")[2].isdigit() or "/" in host:
            raise ValueError(
                f"{entry[:100]!r} is not a host; write HOST, HOST:PORT, *.DOMAIN, an address, or a network (10.0.0.0/8)"
            )
        return cls(name=name, port=port)

    @property
    def is_exact(self) -> bool:
        """Whether it names one host or address, and its port."""
        one = self.network is None or self.network.num_addresses == 1
        return one and self.port is not None and not self.name.startswith("*")

    def has_name(self, host: str, port: int) -> bool:
        """Whether the entry is about this name of a host."""
        if not self.name or self.port not in (None, port):
            return False
        return host == self.name or (self.name.startswith("*.") and host.endswith(self.name[1:]))

    def has_address(self, address: Address, port: int) -> bool:
        """Whether the entry is about this address."""
        return self.network is not None and self.port in (None, port) and address in self.network


def receives(url: object, entries: Iterable[str]) -> bool:
    """Whether the URL's host is in the list, as it is written: a name is not resolved here."""
    found = _PLAIN_URL.fullmatch(url) if isinstance(url, str) else None
    if found is None:
        return False
    host, port = normal(found[2].strip("[]")), int(found[3] or _PORTS[found[1]])
    address = _address(host)
    receivers = [Receiver.of(entry) for entry in entries]
    if address is None:
        return any(each.has_name(host, port) for each in receivers)
    return any(each.has_address(address, port) for each in receivers)


def normal(host: str) -> str:
    """A host's name as it is compared: in lower case, without the dot at its end."""
    return identity(host).removesuffix(".")


def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _split(entry: str) -> tuple[str, int | None]:
    """Host and port of an entry; an IPv6 address with a port is in brackets."""
    if "://" in entry:
        raise ValueError(f"{entry[:100]!r} is a URL; write its host alone, as in localhost:8080")
    host, colon, port = entry.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):
        return entry, None
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"{entry[:100]!r} has a port out of range (1 to 65535)")
    return host, int(port)
