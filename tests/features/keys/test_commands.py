"""`plan keys`: adding keys, listing their ids, comparing machines; never a secret but for `--print`."""

from __future__ import annotations

import base64
import re
import tomllib
from pathlib import Path

import pytest

from plansurvive.features.keys.ring import parse
from tests.client.cli.command import plan


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "ring" / "keys.toml"


@pytest.fixture
def here(tmp_path: Path, keys: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PLANS_KEYS": str(keys)}


async def test_the_first_key_encrypts_at_once_and_the_next_one_when_all_have_read_it(
    here: dict[str, str], keys: Path
) -> None:
    first = (await plan(here, "keys", "new", "--json")).json
    assert keys.stat().st_mode & 0o777 == 0o600
    second = (await plan(here, "keys", "new", "--in", "1h", "--json")).json
    listed = (await plan(here, "keys", "list", "--json")).json
    assert [(each["id"], each["encrypts"]) for each in listed] == [(first["id"], True), (second["id"], False)]


async def test_no_command_shows_a_secret(here: dict[str, str], keys: Path) -> None:
    shown = [await plan(here, "keys", *words) for words in (["new"], ["new", "--json"], ["list"], ["check"])]
    assert [each.code for each in shown] == [0, 0, 0, 0]
    secrets = [row["secret"] for row in tomllib.loads(keys.read_text())["key"]]
    assert len(secrets) == 2
    for secret in secrets:
        assert not any(secret in each.out + each.err for each in shown)
        assert not any(base64.b64decode(secret).hex() in each.out + each.err for each in shown)


async def test_a_printed_key_is_a_ring_and_nothing_is_written(here: dict[str, str], keys: Path) -> None:
    ended = await plan(here, "keys", "new", "--print")
    assert len(parse(ended.out).keys) == 1
    assert not keys.exists()


async def test_machines_with_the_same_keys_print_the_same_line(here: dict[str, str], keys: Path) -> None:
    await plan(here, "keys", "new")
    before = (await plan(here, "keys", "check", "--json")).json
    assert (await plan(here, "keys", "check", "--json")).json == before
    await plan(here, "keys", "new")
    copy = keys.with_name("copy")
    copy.write_bytes(keys.read_bytes())
    copy.chmod(0o600)
    other = (await plan(here | {"PLANS_KEYS": str(copy)}, "keys", "check", "--json")).json
    assert other["ring"] != before["ring"]
    assert other["keys"] == 2


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [("", 0o600, "plan keys new"), ("nonsense = SECRETTEXT", 0o600, "not TOML"), ("x", 0o644, "chmod 600")],
)
async def test_a_ring_that_cannot_be_used_is_said_clearly_and_not_overwritten(
    here: dict[str, str], keys: Path, text: str, mode: int, said: str
) -> None:
    keys.parent.mkdir()
    keys.write_text(text)
    keys.chmod(mode)
    for command in ("list", "check", "new"):
        ended = await plan(here, "keys", command)
        assert ended.code != 0
        assert said in ended.err
        assert "SECRETTEXT" not in ended.out + ended.err
    assert keys.read_text() == text


async def test_without_the_setting_and_with_a_command_it_says_what_to_do(here: dict[str, str]) -> None:
    unset = await plan({"HOME": here["HOME"]}, "keys", "list")
    assert (unset.code, "PLANS_KEYS" in unset.err) == (2, True)
    by_command = await plan(here | {"PLANS_KEYS": "command:vault read keys"}, "keys", "new")
    assert re.search(r"BAD_KEYS.*--print", by_command.err, re.DOTALL)
