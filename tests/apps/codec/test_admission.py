"""Who may have payloads decoded: people with a role, by the token of the Temporal UI or through a proxy."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from plansurvive.apps.codec.admission import login_of
from plansurvive.apps.codec.codec_server import CodecServer
from plansurvive.features.keys.codec import Codec
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.storage import LocalDirectory
from tests.apps.web.access.issuer import CLIENT, Claims, Issuer, by_another_key, serving, unsigned
from tests.features.keys.rings import key, live, ring_file

UI, AUDIENCE, SECRET = "https://temporal.example.org", "plans-codec", "s3cret" * 8
ROLES = "ann@example.org=operator,vic@example.org=viewer,*=none"
NOTHING: dict[str, Any] = {"payloads": []}


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with serving() as found:
        yield found


@contextmanager
def serving_codec(tmp_path: Path, secret: str = SECRET, **environ: str) -> Iterator[str]:
    """A codec server with the login of these settings; its address without the secret."""
    settings = Settings.read({"PLANS_STATE_DIR": str(tmp_path), "PLANS_WEB_ROLES": ROLES, **environ})
    codec = Codec(live(ring_file(tmp_path / "keys", key())))
    values = LocalDirectory(tmp_path / "values")
    with CodecServer(values, [UI], 0, codec, secret, login_of(settings, {})) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def of_issuer(issuer: Issuer) -> dict[str, str]:
    return {
        "PLANS_WEB_OIDC_ISSUER": issuer.url, "PLANS_WEB_OIDC_CLIENT_ID": CLIENT, "PLANS_CODEC_AUDIENCE": AUDIENCE,
    }  # fmt: skip


def claims(issuer: Issuer, **more: Any) -> Claims:
    """The claims of a good access token of Temporal's UI."""
    now = int(time.time())
    base = {"iss": issuer.url, "sub": "x", "aud": AUDIENCE, "iat": now, "exp": now + 300, "email": "vic@example.org"}
    return {**base, **more}


async def status(address: str, **headers: str) -> int:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await asyncio.to_thread(
        httpx.post, f"{address}/decode", json=NOTHING, headers=headers, trust_env=False, timeout=60
    )
    return answer.status_code


async def test_the_token_of_the_temporal_ui_opens_it_for_people_with_a_role(issuer: Issuer, tmp_path: Path) -> None:
    with serving_codec(tmp_path, **of_issuer(issuer)) as address:
        good = f"Bearer {issuer.token(claims(issuer))}"
        assert await status(address, Authorization=good, Origin=UI, Authorization_Extras="anything") == 200
        assert await status(address, Authorization=f"Bearer {SECRET}") == 200, "the secret stays another way"
        assert await status(f"{address}/{SECRET}") == 200
        assert await status(address, Authorization=good, Origin="https://evil.example.org") == 403
        assert await status(address) == 401
        assert await status(address, Authorization_Extras=issuer.token(claims(issuer))) == 401


OTHERS: list[tuple[Claims, Any]] = [
    ({"aud": CLIENT}, Issuer.token),
    ({"aud": "temporal"}, Issuer.token),
    ({"email": "eve@example.org"}, Issuer.token),
    ({"email": None}, Issuer.token),
    ({"exp": 1}, Issuer.token),
    ({"iss": "https://other.example.org"}, Issuer.token),
    ({"cnf": {"jkt": "x"}}, Issuer.token),
    ({}, by_another_key),
    ({}, unsigned),
    ({}, lambda *_: "nonsense"),
    ({}, lambda *_: "x" * 100_000),
]


async def test_any_other_token_is_refused(issuer: Issuer, tmp_path: Path) -> None:
    with serving_codec(tmp_path, secret="", **of_issuer(issuer)) as address:
        for more, make in OTHERS:
            token = make(issuer, claims(issuer, **more))
            try:
                found = await status(address, Authorization=f"Bearer {token}")
            except httpx.HTTPError:
                continue  # a header that is too long is not read to its end
            assert found in (401, 431), (more, make)


async def test_a_login_without_keys_closes_it_too(issuer: Issuer, tmp_path: Path) -> None:
    with serving_codec(tmp_path, secret="", **of_issuer(issuer)) as address:
        assert await status(address) == 401
        assert await status(address, Authorization="Bearer") == 401


async def test_browsers_may_send_what_the_temporal_ui_sends_from_its_origin_only(
    issuer: Issuer, tmp_path: Path
) -> None:
    with serving_codec(tmp_path, **of_issuer(issuer)) as address:
        asked = {"Origin": UI, "Access-Control-Request-Method": "POST"}
        answer = await asyncio.to_thread(httpx.options, f"{address}/decode", headers=asked, trust_env=False)
        assert answer.headers["access-control-allow-origin"] == UI
        assert answer.headers["access-control-allow-credentials"] == "true"
        assert {"Authorization", "Authorization-Extras", "X-Namespace", "Content-Type"} <= set(
            answer.headers["access-control-allow-headers"].split(", ")
        )
        asked["Origin"] = "https://temporal.example.org.evil.org"
        answer = await asyncio.to_thread(httpx.options, f"{address}/decode", headers=asked, trust_env=False)
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_proxy_names_people_and_only_the_proxy(tmp_path: Path) -> None:
    known = tmp_path / "proxy"
    known.write_text("of the proxy")
    environ = {
        "PLANS_WEB_PROXY_HEADER": "X-User", "PLANS_WEB_PROXY_FROM": "127.0.0.0/8",
        "PLANS_WEB_PROXY_SECRET_FILE": str(known),
    }  # fmt: skip
    with serving_codec(tmp_path, **environ) as address:
        proxy = {"X_Plans_Proxy_Secret": "of the proxy"}
        assert await status(address, X_User="ann@example.org", **proxy) == 200
        assert await status(address, X_User="eve@example.org", **proxy) == 401
        assert await status(address, X_User="ann@example.org") == 401
        assert await status(address, **proxy) == 401


def test_the_audience_is_not_the_client_id_of_the_page() -> None:
    environ = {
        "PLANS_WEB_OIDC_ISSUER": "https://i.example.org", "PLANS_WEB_OIDC_CLIENT_ID": "same",
        "PLANS_CODEC_AUDIENCE": "same",
    }  # fmt: skip
    with pytest.raises(SettingError, match="PLANS_CODEC_AUDIENCE: this is the page's client id"):
        login_of(Settings.read(environ), {})


def test_without_a_login_of_the_page_there_is_only_the_secret() -> None:
    assert login_of(Settings.read({}), {}) is None
    oidc = {"PLANS_WEB_OIDC_ISSUER": "https://i.example.org", "PLANS_WEB_OIDC_CLIENT_ID": "page"}
    assert login_of(Settings.read(oidc), {}) is None
