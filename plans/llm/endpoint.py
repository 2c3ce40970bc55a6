"""URL policy for the LLM endpoint: https for any host, plain http for localhost only (FAULTS T10, 161).

Checks the text only, without DNS lookups. Since the API key is sent there, obfuscated or dangerous addresses (hosts as
decimal or hex numbers, user names, cloud metadata services) are rejected.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

CONTEXT_TOKENS = 64_000
"""Default context window of a model: less than what hosted models have, so it is safe; more than most runs need."""
OPENAI = "https://api.openai.com/v1"
"""The default endpoint."""
_METADATA_NAMES = frozenset(
    ("metadata", "metadata.google.internal", "metadata.goog", "instance-data", "metadata.azure.internal")
)
_METADATA_ADDRESSES = frozenset(("100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254"))
_NUMERIC = re.compile(r"^(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+))*\.?$")
_NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*$")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def endpoint_problem(url: str) -> str:
    """Why the URL is rejected, and what to set instead; empty if it is allowed."""
    if len(url) > 2_000 or any(char <= " " or char == "\\" or char > "~" for char in url):
        return "it contains spaces, backslashes or non-ASCII characters, or is too long; use a plain https URL"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "it is not a URL; use one like https://api.openai.com/v1"
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return "it must start with https:// and a host name (http:// is allowed for localhost only)"
    if "@" in parts.netloc:
        return "it contains a user name or password; remove them and set OPENAI_API_KEY"
    if parts.query or parts.fragment or "?" in url or "#" in url:
        return "it contains a query or fragment; remove it"
    return _host_problem(parts, host)


def is_loopback(url: str) -> bool:
    """Whether the endpoint is on localhost, so that no key is needed."""
    host = urlsplit(url).hostname or ""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def origin_of(url: str) -> str:
    """Scheme, host and port, for messages; without credentials."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _host_problem(parts: SplitResult, host: str) -> str:
    address = _address(host)
    if address is None and _NUMERIC.match(host):
        return "its host is an obfuscated IP address; write it in the usual form"
    if address is None and not _NAME.match(host):
        return "its host name is not valid; use a URL like https://api.openai.com/v1"
    if host in _METADATA_NAMES or (address is not None and _is_metadata(address)):
        return "it is the address of a cloud metadata service, not of an LLM"
    if address is not None and (address.is_unspecified or address.is_multicast):
        return "that address is not reachable; use the address of the endpoint itself"
    if parts.scheme == "http" and not is_loopback(f"http://{parts.netloc}"):
        return "plain http would send the key unencrypted; use https (http is allowed for localhost only)"
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
