"""mcp.toml: what is read, and what is refused with the file, the key and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.features.tool_servers.references import secret_of
from plansurvive.features.tool_servers.servers import file_of, read_servers, secrets_in
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import SettingError, Settings

FILES = """
[servers.files]
command = "npx"
args = ["-y", "server", "{workspace}"]
workspace = "write"
env = {KEY = "env:THE_KEY"}
deny = ["write_*"]

[servers.tracker]
url = "https://mcp.example.org/mcp"
token = "file:tracker.token"
startTimeout = 5
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a state directory."""
    return Settings(state_dir=tmp_path, cache_dir=tmp_path / "cache")


def written(settings: Settings, text: str) -> Settings:
    """The same with this mcp.toml."""
    (settings.state_dir / "mcp.toml").write_text(text)
    return settings


def refused(settings: Settings, text: str) -> str:
    """Why it is refused."""
    with pytest.raises(SettingError) as caught:
        read_servers(written(settings, text))
    assert caught.value.code == "BAD_SETTING:PLANS_MCP"
    return caught.value.message


def test_servers_are_read_by_name(settings: Settings) -> None:
    found = read_servers(written(settings, FILES))
    assert list(found) == ["files", "tracker"]
    assert found["files"].is_local
    assert found["files"].offers("read_file")
    assert not found["files"].offers("write_file")
    assert found["tracker"].start_timeout == 5


def test_without_a_file_there_are_no_servers_unless_one_was_named(settings: Settings) -> None:
    assert read_servers(settings) == {}
    named = settings.with_flags(mcp=settings.state_dir / "other.toml")
    with pytest.raises(SettingError, match="it does not exist; create it, or name another"):
        read_servers(named)


def test_a_file_of_a_workspace_is_never_read(settings: Settings, tmp_path: Path) -> None:
    """What it names would be started unasked, and a cloned repository can hold anything."""
    workspace = tmp_path / "cloned"
    (workspace / ".plans").mkdir(parents=True)
    for place in (workspace, workspace / ".plans"):
        (place / "mcp.toml").write_text(FILES)
    with_workspace = settings.with_flags(workspace=workspace)
    assert file_of(with_workspace) == tmp_path / "mcp.toml"
    assert read_servers(with_workspace) == {}


@pytest.mark.parametrize(
    ("table", "part"),
    [
        ('command = "a"\nurl = "https://b"', "servers.x.command: name either `command` (a program) or `url`"),
        ('command = "a"\nenv = {KEY = "sk-abcdef"}', "servers.x.env.KEY: write where the value is, `env:NAME`"),
        ('command = "a"\nargs = ["--api-key=abc"]', "servers.x.args.0: looks like a secret"),
        (
            'command = "a"\nargs = ["ghp_012345678901234567890123456"]',
            "servers.x.args.0: looks like a secret",
        ),
        ('command = "a"\nargs = ["postgres://me:secret@db/x"]', "servers.x.args.0: looks like a secret"),
        ('command = "a"\nargs = ["{workspace}"]', 'servers.x.args: {workspace} needs `workspace = "read"` or "write"'),
        ('command = "a"\nread = ["models"]', "servers.x.read: models is not absolute"),
        ('command = "a"\ntoken = "env:A"', "servers.x.token: needs a `url`"),
        ('command = "a"\nturbo = true', "servers.x.turbo: "),
        ('command = "a"\ntimeout = -1', "servers.x.timeout: "),
        ('url = "http://mcp.example.org/mcp"', "servers.x.url: write https://HOST/...; plain http is for this machine"),
        ('url = "ftp://mcp.example.org"', "servers.x.url: write https://HOST/..."),
        ('url = "https://me:secret@mcp.example.org"', "servers.x.url: it contains a user name or password"),
        ('url = "https://mcp.example.org?api_key=abc"', "servers.x.url: its parameter 'api_key' looks like a secret"),
        ('url = "https://a.example"\ntoken = "sk-abc"', "servers.x.token: write where the value is"),
        ('comand = "a"', "servers.x.comand: there is no such key; did you mean 'command'?"),
        ('command = "a"\nzzz = 1', "servers.x.zzz: there is no such key; there are command, args, url, env"),
        (
            'url = "https://a.example"\noauth = {clientid = "a"}',
            "oauth.clientid: there is no such key; did you mean 'clientId'?",
        ),
        ('url = "https://a.example"\nnetwork = true', "servers.x.network: is for a `command`"),
        ('url = "https://a.example"\nworkspace = "read"', "servers.x.workspace: is for a `command`"),
        ('url = "https://a.example"\noauth = {clientId = "a"}', "servers.x.oauth: `client_credentials` needs clientId"),
    ],
)
def test_a_mistake_is_told_with_its_key_and_what_to_do(settings: Settings, table: str, part: str) -> None:
    message = refused(settings, f"[servers.x]\n{table}\n")
    assert part in message
    assert str(settings.state_dir / "mcp.toml") in message
    for secret in ("sk-abc", "ghp_0123", "secret@", "=abc"):
        assert secret not in message


def test_names_that_could_not_be_those_of_tools_are_refused(settings: Settings) -> None:
    assert "Other" in refused(settings, '[servers.Other]\ncommand = "a"\n')
    assert "it is not TOML" in refused(settings, "[servers")
    assert "server: there is no such key; did you mean 'servers'?" in refused(settings, "[server.x]")


def test_a_file_that_others_may_change_is_refused(settings: Settings) -> None:
    """They could have programs started as the worker's user."""
    written(settings, FILES)
    (settings.state_dir / "mcp.toml").chmod(0o666)
    with pytest.raises(SettingError, match="others may change it, and have programs started; run `chmod go-w"):
        read_servers(settings)


def test_references_lead_to_variables_and_files_and_never_into_an_error(settings: Settings) -> None:
    (settings.state_dir / "tracker.token").write_text("the token\n")
    environ = {"THE_KEY": " the key "}
    found = secrets_in(read_servers(written(settings, FILES)), settings.state_dir, environ)
    assert [each.get_secret_value() for each in found] == ["the key", "the token"]
    (settings.state_dir / "binary").write_bytes(b"\xff\xfe")
    for reference in ("env:MISSING", "file:missing", "file:binary"):
        with pytest.raises(PlanError) as caught:
            secret_of(reference, settings.state_dir, environ)
        assert caught.value.code == "SECRET_MISSING"
