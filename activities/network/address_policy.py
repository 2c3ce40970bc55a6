"""Decides whether http_request may connect to an address: public ones, and those that PLANS_HTTP_ALLOW names.

Decided after the name was resolved, so that no spelling of a host matters. Addresses that hold an IPv4 address are as
public as that one. The servers that the worker itself uses (Temporal, its UI, the LLM's endpoint) take an entry with
their exact host and port: a plan that reaches them can read every plan and decide about itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from plansurvive.plans.errors import ToolError
from plansurvive.plans.model.receivers import Address, Receiver, normal

_GLOBAL_IPV6 = IPv6Network("2000::/3")
_NOT_GLOBAL = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",
            "192.88.99.0/24",
            "100.64.0.0/10",
            "168.63.129.16/32",
            "2001::/23",
            "2001:db8::/32",
            "3fff::/20",
            "2620:4f:8000::/48",
        ),
    )
)
"""Blocks that some versions of Python count as global, and the address at which Azure serves its machines' secrets."""
_TRANSLATED = IPv6Network("64:ff9b::/96")
_WITH_IPV4_AT_END = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
_ISATAP = (0x00005EFE, 0x02005EFE)


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host, most preferred first. Raises OSError."""


@dataclass(frozen=True)
class Endpoint:
    """A server that the worker itself uses, and the addresses it has."""

    host: str
    port: int
    addresses: tuple[Address, ...] = ()


class AddressRefused(ToolError):
    """None of the addresses of a host may be connected to; `why` says of each what it is."""

    def __init__(self, host: str, port: int, why: str) -> None:
        super().__init__("ADDRESS_REFUSED", f"{host}:{port} cannot be reached by http_request: {why}")
        self.why = why


@dataclass(frozen=True)
class AddressPolicy:
    """What one worker's http_request may connect to."""

    allowed: tuple[Receiver, ...] = ()
    own: Callable[[], Sequence[Endpoint]] = tuple
    """Finds the servers that the worker itself uses, at this moment. May block."""
    look_up: Resolve | None = None
    """Another resolver than this machine's."""

    @classmethod
    def of(
        cls, entries: Iterable[str], own: Callable[[], Sequence[Endpoint]] = tuple, look_up: Resolve | None = None
    ) -> AddressPolicy:
        """The policy for the entries of PLANS_HTTP_ALLOW."""
        return cls(tuple(Receiver.of(entry) for entry in entries), own, look_up)

    def choose(self, host: str, port: int, found: Iterable[str]) -> list[str]:
        """Those of the addresses found for a host that may be connected to. Raises ADDRESS_REFUSED if none may."""
        addresses = [ip_address(text.partition("%")[0]) for text in dict.fromkeys(found)]
        own = [] if all(map(is_public, addresses)) else self.own()  # finding them takes time
        reasons = {address: self._refusal(normal(host), port, address, own) for address in addresses}
        usable = [str(address) for address, reason in reasons.items() if not reason]
        if not usable:
            why = "; ".join(f"{address} is {reason}" for address, reason in list(reasons.items())[:5])
            raise AddressRefused(host, port, why)
        return usable

    def _refusal(self, host: str, port: int, address: Address, own: Sequence[Endpoint]) -> str:
        """Why the address may not be connected to; empty if it may."""
        entries = [each for each in self.allowed if each.has_name(host, port) or each.has_address(address, port)]
        if any(each.is_exact for each in entries):
            return ""
        if any(_is_at(endpoint, port, address) for endpoint in own):
            entry = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            return f"a server of the worker itself; only the entry {entry} of PLANS_HTTP_ALLOW opens it"
        if entries or is_public(address):
            return ""
        return f"not a public address; add {host} or {host}:{port} to PLANS_HTTP_ALLOW of the worker to open it"


def is_public(address: Address) -> bool:
    """Whether the address is one of the internet: not of this machine, a private network, a cloud's metadata, ..."""
    inner = _embedded(address)
    if inner:
        usual = address in _TRANSLATED or (isinstance(address, IPv6Address) and address.sixtofour is not None)
        return usual and all(is_public(each) for each in inner)
    if isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6:
        return False
    if any(address.version == block.version and address in block for block in _NOT_GLOBAL):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _embedded(address: Address) -> list[IPv4Address]:
    """The IPv4 addresses that an IPv6 address leads to: mapped, translated (NAT64), 6to4, Teredo, ISATAP."""
    if isinstance(address, IPv4Address):
        return []
    number = int(address)
    found = [IPv4Address(number & 0xFFFFFFFF)] if any(address in block for block in _WITH_IPV4_AT_END) else []
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found += address.teredo
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        found.append(IPv4Address(number & 0xFFFFFFFF))
    return found


def _is_at(endpoint: Endpoint, port: int, address: Address) -> bool:
    """Whether a connection to the address would reach the endpoint: this machine has more addresses than one."""
    if port != endpoint.port:
        return False
    reached = {address, *_embedded(address)}
    return not reached.isdisjoint(endpoint.addresses) or (
        not is_public(address) and any(each.is_loopback or each.is_unspecified for each in endpoint.addresses)
    )
