"""Which settings make a login, and where a page is served without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.client.access.choose import access_for, check
from plansurvive.client.access.link import SecretLink
from plansurvive.client.access.login import OidcAccess
from plansurvive.client.access.proxy import ProxyAccess
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import SettingError, Settings

OIDC = {"PLANS_WEB_OIDC_ISSUER": "https://login.example", "PLANS_WEB_OIDC_CLIENT_ID": "plans"}
PROXY = {"PLANS_WEB_PROXY_HEADER": "X-User", "PLANS_WEB_PROXY_FROM": "10.0.0.1"}
URL = {"PLANS_WEB_URL": "https://plans.example"}


def settings_of(tmp_path: Path, **given: str) -> Settings:
    found = Settings.read({"HOME": str(tmp_path), **given})
    found.make_state_dir()
    return found


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "plans.example", "127.0.0.1.evil.example"])
def test_beyond_this_machine_the_page_needs_a_login_and_its_url(tmp_path: Path, host: str) -> None:
    for given, code in (
        ({}, "WEB_NEEDS_LOGIN"), (URL, "WEB_NEEDS_LOGIN"), (OIDC, "BAD_SETTING:PLANS_WEB_URL"),
        (PROXY, "BAD_SETTING:PLANS_WEB_URL"),
    ):  # fmt: skip
        with pytest.raises(PlanError) as caught:
            check(settings_of(tmp_path, **given), host)
        assert caught.value.code == code
    for login in (OIDC, PROXY):
        check(settings_of(tmp_path, **login, **URL), host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.5.5.5"])
def test_on_this_machine_it_needs_none(tmp_path: Path, host: str) -> None:
    check(settings_of(tmp_path), host)


def test_in_a_container_whose_port_only_this_machine_reaches_the_link_will_do(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, PLANS_WEB_URL="http://127.0.0.1:7243")
    check(settings, "0.0.0.0")
    access = access_for(settings, {}, "ann", "0.0.0.0:7243")
    assert isinstance(access, SecretLink)
    assert (access.host, access.link().startswith("http://127.0.0.1:7243/?key=")) == ("127.0.0.1:7243", True)


@pytest.mark.parametrize(
    "given",
    [
        OIDC | PROXY | URL,
        {"PLANS_WEB_OIDC_ISSUER": "https://login.example"} | URL,
        {"PLANS_WEB_OIDC_CLIENT_ID": "plans"},
        {"PLANS_WEB_PROXY_HEADER": "X-User"},
    ],
)
def test_half_a_login_is_refused(tmp_path: Path, given: dict[str, str]) -> None:
    with pytest.raises(SettingError):
        check(settings_of(tmp_path, **given), "127.0.0.1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLANS_WEB_URL", "http://plans.example"),
        ("PLANS_WEB_URL", "https://plans.example/path"),
        ("PLANS_WEB_URL", "https://user:secret@plans.example"),
        ("PLANS_WEB_URL", "plans.example"),
        ("PLANS_WEB_URL", "https://plans.example:x"),
        ("PLANS_WEB_OIDC_ISSUER", "http://login.example"),
        ("PLANS_WEB_OIDC_ISSUER", "https://login.example?x=1"),
        ("PLANS_WEB_PROXY_FROM", "everywhere"),
        ("PLANS_WEB_PROXY_HEADER", "X User"),
        ("PLANS_WEB_LISTEN", "7243"),
        ("PLANS_WEB_LISTEN", "::1:7243"),
        ("PLANS_WEB_LISTEN", "0.0.0.0:99999"),
        ("PLANS_WEB_OIDC_SCOPES", "email"),
    ],
)
def test_a_setting_that_would_not_be_safe_is_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingError) as caught:
        settings_of(tmp_path, **{name: value})
    assert caught.value.code == f"BAD_SETTING:{name}"


def test_each_way_to_log_in_has_cookies_that_fit_its_address(tmp_path: Path) -> None:
    link = access_for(settings_of(tmp_path), {}, "ann", "127.0.0.1:7243")
    oidc = access_for(settings_of(tmp_path, **OIDC, **URL), {}, "", "0.0.0.0:80")
    proxy = access_for(settings_of(tmp_path, **PROXY, **URL), {}, "", "0.0.0.0:80")
    assert [type(each) for each in (link, oidc, proxy)] == [SecretLink, OidcAccess, ProxyAccess]
    assert (link.cookie, link.is_secure, link.same_site) == ("plans_7243", False, "strict")
    assert (oidc.cookie, oidc.is_secure, oidc.host) == ("__Host-plans", True, "plans.example")


def test_secrets_come_from_a_file_or_a_variable_and_not_from_the_settings(tmp_path: Path) -> None:
    for given in (
        {"PLANS_WEB_OIDC_SECRET_FILE": str(tmp_path / "none")}, {"PLANS_WEB_OIDC_SECRET_ENV": "NOT_SET"},
    ):  # fmt: skip
        with pytest.raises(SettingError):
            access_for(settings_of(tmp_path, **OIDC, **URL, **given), {}, "", "0.0.0.0:80")
    settings = settings_of(tmp_path, **OIDC, **URL, PLANS_WEB_OIDC_SECRET_ENV="OF_CLIENT")
    access_for(settings, {"OF_CLIENT": "hidden"}, "", "0.0.0.0:80")
    assert [name for name in settings.as_environ() if "WEB" in name] == ["PLANS_WEB_URL"]
