"""Settings of the web page: its address, how a team logs in, and who may do what.

Secrets are not settings: the settings name the file or the variable that holds one, as settings are passed on to
background workers.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, Field
from pydantic.functional_validators import AfterValidator

_HEADER = r"^[A-Za-z0-9][A-Za-z0-9-]{0,99}$"
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,199}$"


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine, and nothing that name resolution could change."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; an IPv6 address stands in brackets. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535 or re.search(r"[\s/@]", host):
        raise ValueError("write HOST:PORT, such as 0.0.0.0:8080 or [::1]:8080")
    if host.startswith("[") != host.endswith("]") or (":" in host and not host.startswith("[")):
        raise ValueError("put an IPv6 address in brackets: [::1]:8080")
    return host.strip("[]"), int(port)


def _address(text: str) -> str:
    split_address(text)
    return text


def _origin(text: str) -> str:
    """The URL of a page without a path. Plain http is for this machine only, as cookies would be readable."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        raise ValueError(f"it is not a URL: {error}") from error
    if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query or url.fragment:
        raise ValueError("write https://HOST or https://HOST:PORT")
    if url.path not in ("", "/"):
        raise ValueError("the page needs its own host name: write a URL without a path")
    if url.scheme == "http" and not is_loopback(url.hostname):
        raise ValueError("it must be https: over http, others on the network could read cookies")
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    default = {"http": 80, "https": 443}[url.scheme]
    return f"{url.scheme}://{host}" + ("" if port in (None, default) else f":{port}")


def _issuer(text: str) -> str:
    """An OpenID Connect issuer, as it is written in its tokens: compared character by character."""
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment or url.username:
        raise ValueError("write the issuer's URL, such as https://accounts.example.org")
    if url.scheme == "http" and not is_loopback(url.hostname):
        raise ValueError("it must be https: over http, others on the network could log in as anybody")
    return text


def _names(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


def _networks(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(str(ipaddress.ip_network(part.strip(), strict=False)) for part in value.split(",") if part.strip())


class WebSettings(BaseModel):
    """Settings of `plan web`."""

    web_listen: Annotated[str, AfterValidator(_address)] | None = None
    """`HOST:PORT` that the page is served at; beyond this machine only with a login; default: a free port of
    127.0.0.1."""
    web_url: Annotated[str, AfterValidator(_origin)] | None = None
    """URL of the page as people open it: https, without a path. Links in messages begin with it; default: the address
    it listens at."""
    web_oidc_issuer: Annotated[str, AfterValidator(_issuer)] | None = None
    """OpenID Connect issuer that people log in with."""
    web_oidc_client_id: str | None = Field(default=None, min_length=1, max_length=1_000)
    """Client id that the issuer knows the page by."""
    web_oidc_secret_file: Path | None = None
    """File with the client secret, readable by this user only."""
    web_oidc_secret_env: str | None = Field(default=None, pattern=_VARIABLE)
    """Name of the variable with the client secret, instead of a file."""
    web_oidc_name_claim: str = Field(default="email", min_length=1, max_length=100)
    """Claim of the ID token that names a person."""
    web_oidc_groups_claim: str = Field(default="groups", min_length=1, max_length=100)
    """Claim of the ID token that lists a person's groups."""
    web_oidc_scopes: str = Field(default="openid email profile", pattern=r"^openid( [\x21\x23-\x5b\x5d-\x7e]+)*$")
    """Scopes to ask the issuer for."""
    web_proxy_header: str | None = Field(default=None, pattern=_HEADER)
    """Header in which a trusted proxy names the person who is logged in."""
    web_proxy_groups: str | None = Field(default=None, pattern=_HEADER)
    """Header in which it lists that person's groups, comma separated."""
    web_proxy_from: Annotated[tuple[str, ...], BeforeValidator(_networks)] = ()
    """Addresses and networks of the proxy, comma separated; from elsewhere the header is refused."""
    web_proxy_secret_file: Path | None = None
    """File with a secret that the proxy sends in `X-Plans-Proxy-Secret`."""
    web_roles: str = Field(default="*=viewer", max_length=100_000)
    """Who is viewer, approver or operator: `WHO=ROLE`, comma separated, or the path of a .toml file
    (docs/web.md#roles)."""
    web_idle_minutes: int = Field(default=60, ge=1, le=10_080)
    """Minutes without a request after which a person logs in again."""
    web_session_hours: int = Field(default=12, ge=1, le=720)
    """Hours after which a person logs in again in any case."""
    web_mcp: bool = True
    """Serve the MCP server (docs/mcp.md#over-http) at `/mcp` of the page."""
    web_mcp_audience: str | None = Field(default=None, min_length=1, max_length=1_000)
    """What access tokens for the MCP server name as their audience; default: URL of the page and `/mcp`."""
    codec_audience: str | None = Field(default=None, min_length=1, max_length=1_000)
    """Audience of the access tokens with which the Temporal UI may ask `plan codec`
    (docs/encryption.md#in-the-temporal-ui-and-cli); default: only its secret opens it."""
    web_mcp_templates: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """Templates that are tools (docs/mcp.md#templates-as-tools) of the page's MCP server, comma separated, or `all`."""

    web_mcp_decide: Literal["here", "questions", "elsewhere"] = "here"
    """What people decide through the clients of their agents (docs/mcp.md#decisions-in-the-clients-window):
    `here` (everything), `questions` (only answers), `elsewhere` (nothing)."""

    def web_problem(self) -> dict[str, str]:
        """By variable, why these settings do not make a login; empty if they do. For whoever serves the page."""
        if self.web_oidc_issuer and self.web_proxy_header:
            return {"PLANS_WEB_PROXY_HEADER": "PLANS_WEB_OIDC_ISSUER is another way to log in; choose one"}
        if self.web_oidc_issuer and not self.web_oidc_client_id:
            return {"PLANS_WEB_OIDC_CLIENT_ID": "the issuer needs it; set the client id that it gave to this page"}
        if self.web_oidc_client_id and not self.web_oidc_issuer:
            return {"PLANS_WEB_OIDC_ISSUER": "PLANS_WEB_OIDC_CLIENT_ID needs the issuer that gave it; set it"}
        if self.web_mcp_audience and self.web_mcp_audience == self.web_oidc_client_id:
            text = "this is the page's client id: ID tokens would count as access tokens; name another audience"
            return {"PLANS_WEB_MCP_AUDIENCE": text}
        if self.web_proxy_header and not self.web_proxy_from:
            return {"PLANS_WEB_PROXY_FROM": "PLANS_WEB_PROXY_HEADER needs the addresses of the proxy; set them"}
        return {}

    @property
    def web_login(self) -> Literal["link", "oidc", "proxy"]:
        """How people are recognised: by the secret link, which is for one person, or as a team."""
        if self.web_oidc_issuer:
            return "oidc"
        return "proxy" if self.web_proxy_header else "link"


OF_PAGE = frozenset(WebSettings.model_fields) - {"web_url"}
"""Fields that a worker has no use for: another value is not a reason to replace a running one."""
