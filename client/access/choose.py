"""The way to log in that the settings choose, or why the page is not served as it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from plansurvive.client.access.access import Access
from plansurvive.client.access.link import SecretLink, fresh_secret
from plansurvive.client.access.login import OidcAccess
from plansurvive.client.access.provider import Provider
from plansurvive.client.access.proxy import ProxyAccess
from plansurvive.client.access.roles import RoleSource
from plansurvive.client.access.sessions import Sessions
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.setting_groups.web import is_loopback
from plansurvive.runtime.settings import SettingError, Settings

MAX_SECRET = 10_000


def check(settings: Settings, host: str) -> None:
    """Raise SettingError, or PlanError WEB_NEEDS_LOGIN, if the page may not be served at `host` with these settings."""
    problem = settings.web_problem()
    if problem:
        raise SettingError(problem)
    if is_loopback(host):
        return
    is_here = settings.web_url is not None and settings.web_url.startswith("http:")
    if settings.web_login == "link" and not is_here:
        text = (
            f"other machines reach {host}, and the secret link is for one person on this one. Set how people log in:"
            " PLANS_WEB_OIDC_ISSUER or PLANS_WEB_PROXY_HEADER (docs/web.md); or serve it at 127.0.0.1"
        )
        raise PlanError(text, "WEB_NEEDS_LOGIN")
    if settings.web_url is None:
        raise SettingError(
            {"PLANS_WEB_URL": "set the URL by which people open the page, such as https://plans.example"}
        )


def access_for(settings: Settings, environ: Mapping[str, str], user: str, address: str) -> Access:
    """Access as the settings say, for a page that listens at `address` (HOST:PORT). Raises as `check`, SettingError."""
    url = settings.web_url or f"http://{address}"
    if settings.web_login == "link":
        return SecretLink(fresh_secret(settings.state_dir), address, user, url)
    roles = RoleSource(settings.web_roles)
    if settings.web_login == "proxy":
        secret = _secret_of_file(settings.web_proxy_secret_file, "PLANS_WEB_PROXY_SECRET_FILE")
        header, groups = settings.web_proxy_header or "", settings.web_proxy_groups or ""
        return ProxyAccess(url, header, groups, settings.web_proxy_from, secret, roles)
    sessions = Sessions(settings.web_idle_minutes * 60, settings.web_session_hours * 3_600)
    provider = Provider(settings.web_oidc_issuer or "", settings.web_oidc_client_id or "", _client(settings, environ))
    return OidcAccess(
        url, provider, roles, sessions, name=settings.web_oidc_name_claim, groups=settings.web_oidc_groups_claim,
        scopes=settings.web_oidc_scopes,
    )  # fmt: skip


def _client(settings: Settings, environ: Mapping[str, str]) -> str:
    """The client secret; empty for a public client."""
    name = settings.web_oidc_secret_env
    if name is None:
        return _secret_of_file(settings.web_oidc_secret_file, "PLANS_WEB_OIDC_SECRET_FILE")
    if not environ.get(name):
        raise SettingError({"PLANS_WEB_OIDC_SECRET_ENV": f"the variable {name} is not set"})
    return environ[name]


def _secret_of_file(path: Path | None, setting: str) -> str:
    if path is None:
        return ""
    try:
        found = path.read_bytes()[: MAX_SECRET + 1].decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError({setting: f"{path} cannot be read: {error}"}) from error
    if not found or len(found) > MAX_SECRET:
        raise SettingError({setting: f"{path} does not hold a secret"})
    return found
