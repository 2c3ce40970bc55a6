"""A trusted proxy names the person in a header: it has logged them in, and lets nobody past it.

The header counts only from the proxy's own addresses, with its secret if there is one. From everywhere else it is
refused rather than ignored: somebody is trying, or the proxy is set up wrongly.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Sequence

from starlette.requests import Request

from plansurvive.client.access.access import Access, Known, Unknown
from plansurvive.client.access.people import Forbidden, Person
from plansurvive.client.access.roles import RoleSource
from plansurvive.client.access.sessions import Sessions

SECRET_HEADER = "x-plans-proxy-secret"  # noqa: S105  # a name
MAX_NAME = 200
MAX_GROUPS = 10_000


class ProxyAccess(Access):
    """Access by the header of a proxy. `sources`: its addresses and networks; `secret`: empty if it sends none."""

    can_log_out = False

    def __init__(
        self, url: str, header: str, groups: str, sources: Sequence[str], secret: str, roles: RoleSource
    ) -> None:
        super().__init__(url, Sessions(1, 1))
        self._header, self._groups = header.lower(), groups.lower()
        self._sources = [ipaddress.ip_network(each) for each in sources]
        self._secret, self._roles = secret, roles

    def known(self, request: Request) -> Known | None:
        """The person whom the proxy names."""
        named = request.headers.getlist(self._header)
        if named and not self._is_proxy(request):
            raise Forbidden(f"The header {self._header} counts only from the proxy.")
        if not named or not self._is_proxy(request):
            return None
        if len(named) > 1 or len(request.headers.getlist(self._groups)) > 1:
            raise Forbidden("The proxy names the person twice.")
        name, groups = _text(named[0]), _text(request.headers.get(self._groups, "") if self._groups else "")
        if not name.strip() or len(name) > MAX_NAME or len(groups) > MAX_GROUPS or not (name + groups).isprintable():
            raise Forbidden("The proxy sent a user name that is not valid.")
        role = self._roles.role(name, [each.strip() for each in groups.split(",") if each.strip()])
        if role is None:
            raise Forbidden(f"{name} is not allowed to use this page; its operator assigns roles with PLANS_WEB_ROLES.")
        csrf = hmac.new(self._key, f"name:{name}".encode(), hashlib.sha256).hexdigest()
        return Known(Person(name, frozenset({role}), verified=True), csrf, f"name:{name}")

    def unknown(self, _request: Request) -> Unknown:
        """The proxy should have asked."""
        return Unknown(401, f"The proxy in front of this page sends no name in the header {self._header}.")

    def _is_proxy(self, request: Request) -> bool:
        try:
            address = ipaddress.ip_address(request.client.host if request.client else "")
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        if not any(address in network for network in self._sources):
            return False
        given = request.headers.getlist(SECRET_HEADER)
        return not self._secret or (
            len(given) == 1 and hmac.compare_digest(given[0].encode(errors="replace"), self._secret.encode())
        )


def _text(header: str) -> str:
    """The text of a header, which proxies write in UTF-8. Raises Forbidden."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError as error:
        raise Forbidden("The proxy sent a user name that is not valid.") from error
