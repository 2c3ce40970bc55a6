"""Files of the operator, and paths and addresses in them, that cannot be: each verb says what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.runtime.home_paths import home_path
from tests.client.cli.command import plan
from tests.kit.sinks import KEY

PATHS = {"a NUL": "file:\\u0000", "no such user": "file:~nobody-there/x", "a directory": "file:."}
HOSTS = {
    "not of IDNA": "http://xn--/", "a code point": "http://xn--a.org/", "a bracket": "http://[::1", "a port": "http://h:99999/",
    "a blank": "http://a b/", "nothing": "", "a NUL": "http://a\\u0000b/", "two dots": "http://a..b/",
}  # fmt: skip


def webhook(url: str = "http://127.0.0.1:1/", key: str = KEY) -> str:
    return f'[targets.a]\nwebhook = "{url}"\nkey = "{key}"\n'


def server(**fields: str) -> str:
    rows = {"url": "https://127.0.0.1:1/", **fields} if "command" not in fields else fields
    return "[servers.a]\n" + "".join(f'{name} = "{value}"\n' for name, value in rows.items())


def secret(source: str) -> str:
    return f'[secrets.A]\nfrom = "{source}"\ntools = ["run_command"]\n'


BROKEN = {
    "no table": "a = 1\n", "a number": "[targets]\na = 1\n[tools]\na = 1\n[secrets]\na = 1\n[servers]\na = 1\n",
    "deep": "a = " + "[" * 100_000, "a long number": "a = " + "9" * 5_000, "a date": "a = 1979-05-27T07:32:00Z\n",
    "not UTF-8": "a = '\udcff'\n",
}  # fmt: skip
CASES: dict[str, tuple[str, str, str]] = {
    **{f"a webhook at {name}": ("notify.toml", webhook(url), "notify test a") for name, url in HOSTS.items()},
    **{f"a webhook in {name}": ("notify.toml", webhook(url), "notify test a") for name, url in PATHS.items()},
    **{f"a listed webhook in {name}": ("notify.toml", webhook(url), "notify list") for name, url in PATHS.items()},
    **{f"a key in {name}": ("notify.toml", webhook(key=key), "notify test a") for name, key in PATHS.items()},
    **{f"a secret in {name}": ("secrets.toml", secret(url), "secrets check") for name, url in PATHS.items()},
    **{f"a server at {name}": ("mcp.toml", server(url=url), "tools") for name, url in HOSTS.items()},
    **{f"a token in {name}": ("mcp.toml", server(token=url), "tools") for name, url in PATHS.items()},
    "a secret of a command with a NUL": ("secrets.toml", secret("command:a\\u0000"), "secrets check"),
    "a program of nobody": ("mcp.toml", server(command="~nobody-there/x"), "tools"),
    "a program with a NUL": ("mcp.toml", server(command="/a\\u0000"), "tools"),
    **{f"targets: {name}": ("notify.toml", text, "notify test a") for name, text in BROKEN.items()},
    **{f"secrets: {name}": ("secrets.toml", text, "secrets list") for name, text in BROKEN.items()},
    **{f"servers: {name}": ("mcp.toml", text, "tools") for name, text in BROKEN.items()},
}


@pytest.mark.parametrize("name", CASES)
async def test_what_cannot_be_read_is_said_and_is_no_bug(name: str, tmp_path: Path) -> None:
    file, text, command = CASES[name]
    (tmp_path / file).write_text(text, errors="surrogateescape")
    environ = {"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path), "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    answered = await plan(environ, *command.split())
    said = answered.err + answered.out
    assert "UNEXPECTED" not in said, said
    assert answered.code in (1, 2) or "Tool server a: " in said, said
    assert any(each in said for each in (file, "PLANS_NOTIFY: ", "NOT_DELIVERED", "the secret A comes from ")), said


def test_a_path_of_a_user_that_there_is_not_stays_as_it_is_written() -> None:
    assert home_path("~nobody-there/x") == Path("~nobody-there/x")
    assert home_path("~/x") == Path.home() / "x"
