"""A login to a server of tools in a browser, and the tokens that workers use and renew afterwards."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest

from plansurvive.features.tool_servers.login import log_in
from plansurvive.features.tool_servers.servers import read_servers
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import Settings
from tests.features.tool_servers.serving import Serving
from tests.features.tool_servers.web_server import CLIENT, TOKEN, WebServer, web_server


def settings_for(state: Path, web: WebServer) -> Settings:
    """Settings with an mcp.toml that names the server."""
    text = f'[servers.x]\nurl = "{web.url}"\n[servers.x.oauth]\ngrant = "authorization_code"\nclientId = "{CLIENT}"\n'
    (state / "mcp.toml").write_text(text)
    return Settings(state_dir=state, cache_dir=state / "cache")


@pytest.mark.slow
async def test_a_person_logs_in_once_and_workers_use_and_renew_the_token(tmp_path: Path) -> None:
    for name in ("workspace", "state"):
        (tmp_path / name).mkdir()
    with web_server(needs_token=True) as web:
        settings, serving = settings_for(tmp_path / "state", web), Serving(tmp_path)
        visited: list[asyncio.Task[None]] = []
        assert await log_in(settings, "x", lambda url: visited.append(asyncio.create_task(browse(url)))) == 1
        await asyncio.gather(*visited)
        stored = tmp_path / "state" / "mcp" / "x.tokens.json"
        assert stored.stat().st_mode & 0o077 == 0
        async with serving.servers(read_servers(settings)) as servers:
            assert await serving.call(servers, "echo", a=1) == {"a": 1}
        content = json.loads(stored.read_text())
        content["expires"] = 1.0
        stored.write_text(json.dumps(content))
        async with serving.servers(read_servers(settings)) as servers:
            assert await serving.call(servers, "echo", a=2) == {"a": 2}
    assert [each["grant_type"] for each in web.issued] == [["authorization_code"], ["refresh_token"]]
    assert web.issued[0]["code"] == ["the-code"]
    assert web.issued[0]["code_verifier"]
    assert TOKEN in stored.read_text()


async def browse(url: str) -> None:
    """What a browser does when the person has agreed: it returns with a code."""
    asked = {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}
    assert asked["code_challenge_method"] == "S256"
    target = f"{asked['redirect_uri']}?code=the-code&state={asked['state']}"
    page = await asyncio.to_thread(lambda: urlopen(target).read())
    assert b"You can close this page" in page


async def test_a_server_that_needs_no_login_is_named(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, cache_dir=tmp_path)
    with pytest.raises(PlanError, match="no login is needed"):
        await log_in(settings, "y", print)
