"""Which addresses an LLM endpoint may have: https anywhere, plain http on this machine only (FAULTS T10, 161).

Text only; nothing is looked up. An address that hides what it is (numbers in decimal or hex, user names, metadata
services of clouds) is refused, since the key is sent there.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

OPENAI = "https://api.openai.com/v1"
"""The endpoint when none is set."""
_METADATA_NAMES = frozenset(
    ("metadata", "metadata.google.internal", "metadata.goog", "instance-data", "metadata.azure.internal")
)
_METADATA_ADDRESSES = frozenset(("100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254"))
_NUMERIC = re.compile(r"^(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+))*\.?$")
_NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*$")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def endpoint_problem(url: str) -> str:
    """Why an LLM must not be asked there, and what to set instead; empty when it may be."""
    if len(url) > 2_000 or any(char <= " " or char == "\\" or char > "~" for char in url):
        return "it holds spaces, backslashes or characters outside ASCII, or is too long; give a plain https address"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "it is no address; give one such as https://api.openai.com/v1"
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return "it must begin with https:// and name a host (http:// is for this machine only)"
    if "@" in parts.netloc:
        return "it holds a user name or password; take them out and set OPENAI_API_KEY"
    if parts.query or parts.fragment or "?" in url or "#" in url:
        return "it holds a query or fragment; give the address without"
    return _host_problem(parts, host)


def is_loopback(url: str) -> bool:
    """Whether the endpoint is on this machine, where no key is needed."""
    host = urlsplit(url).hostname or ""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def origin_of(url: str) -> str:
    """Scheme, host and port, for messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _host_problem(parts: SplitResult, host: str) -> str:
    address = _address(host)
    if address is None and _NUMERIC.match(host):
        return "its host is a number in disguise; write the address in its usual form"
    if address is None and not _NAME.match(host):
        return "its host is no valid name; give one such as https://api.openai.com/v1"
    if host in _METADATA_NAMES or (address is not None and _is_metadata(address)):
        return "it is the address of a cloud's metadata service, not of an LLM"
    if address is not None and (address.is_unspecified or address.is_multicast):
        return "nothing can be reached at that address; name the endpoint's own"
    if parts.scheme == "http" and not is_loopback(f"http://{parts.netloc}"):
        return "plain http would send the key readable through the network; use https (http is for localhost only)"
    return ""


def _address(host: str) -> Address | None:
    try:
        address: Address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_metadata(address: Address) -> bool:
    return address.is_link_local or str(address) in _METADATA_ADDRESSES
