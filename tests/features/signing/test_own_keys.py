"""The keys of people and pages: made once, private, and only for what their owners send."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from plansurvive.features.policy.policy_file import people_of, read
from plansurvive.features.signing.author import author
from plansurvive.features.signing.connection import interceptors
from plansurvive.features.signing.own_keys import OwnKeys, make, own_key, path_of, speak_for
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import SettingError, Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path / "state")})


@pytest.mark.parametrize("name", ["ann", "Ann Müller", 'a"b', "ann@example.org"])
def test_its_line_is_read_as_the_key_that_signs(settings: Settings, name: str) -> None:
    own, is_new = make(settings, "person", name)
    assert is_new
    assert make(settings, "person", name)[1] is False, "it is made once"
    policy = read(f"[people]\n{own.line}\n", datetime.now(UTC)).policy
    assert policy is not None
    people = people_of(policy)
    assert people is not None
    assert people.people == {name: own.key.public_key().public_bytes_raw().hex()}
    assert stat.S_IMODE(path_of(settings, "person").stat().st_mode) == 0o600


def test_a_directory_is_one_persons(settings: Settings) -> None:
    make(settings, "person", "ann")
    with pytest.raises(PlanError, match=re.escape("is the key of ann; a state directory has one")):
        make(settings, "person", "bob")
    for name in ("", " ann", "group:ops", "page:team", "a\nb", "x" * 201):
        with pytest.raises(PlanError, match="cannot name a page"):
            make(settings, "page", name)


@pytest.mark.parametrize("content", ["", "zz ann", "0" * 64, f"{'0' * 63} ann"])
def test_a_file_that_holds_no_key_says_what_to_do(settings: Settings, content: str) -> None:
    make(settings, "person", "ann")
    path_of(settings, "person").write_text(content)
    with pytest.raises(SettingError, match="holds no key; remove it, and `plan keys person` makes one"):
        own_key(settings, "person")


def test_a_key_that_others_can_read_proves_nothing(settings: Settings) -> None:
    make(settings, "person", "ann")
    path_of(settings, "person").chmod(0o640)
    with pytest.raises(SettingError, match=r"mode 0640.*proves nothing"):
        interceptors(settings)


def test_a_command_speaks_for_the_owner_of_the_key_and_for_no_one_else(settings: Settings) -> None:
    assert author(settings, "bob") == "", "without a key anybody is who they say"
    make(settings, "person", "ann")
    assert (author(settings, ""), author(settings, "ann")) == ("ann", "ann")
    with pytest.raises(PlanError, match=r"--by bob: what is sent from here is signed with the key of ann"):
        author(settings, "bob")


def test_a_process_that_has_not_asked_who_speaks_signs_for_no_person(settings: Settings) -> None:
    keys = OwnKeys(make(settings, "person", "dan")[0], make(settings, "page", "team")[0])
    assert keys.of({}, "dan") is None, "a worker, a page or an MCP server of the same directory"
    assert keys.person is not None
    speak_for(keys.person)
    assert keys.of({}, "dan") is keys.person
    assert keys.of({"via": "mcp"}, "dan") is None
    assert keys.of({}, "eve") is None
    assert keys.of({"via": "web"}, "dan") is keys.of({"via": "link"}, "") is keys.page


def test_who_has_no_key_and_asks_for_no_signatures_signs_nothing(settings: Settings) -> None:
    assert interceptors(settings) == []
    make(settings, "page", "team")
    assert len(interceptors(settings)) == 1


@pytest.mark.slow
def test_the_commands_make_them_and_other_commands_sign_as_no_one_else(tmp_path: Path) -> None:
    state = tmp_path / "state"

    def plan(*args: str) -> subprocess.CompletedProcess[str]:
        environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PLANS_STATE_DIR": str(state)}
        return subprocess.run(
            [sys.executable, "-m", "plansurvive", *args], env=environ, capture_output=True, text=True, check=False
        )

    made = json.loads(plan("keys", "person", "ann", "--json").stdout)
    assert (made["name"], made["new"], made["file"]) == ("ann", True, str(state / "person.key"))
    assert plan("keys", "page", "team").stdout.startswith('team = "ed25519:')
    (state / "policy.toml").write_text(
        f'[[rule]]\nname = "r"\ndecide = "ask"\nby = ["ann"]\n[people]\n{made["line"]}\n'
    )
    (state / "policy.toml").chmod(0o600)
    assert plan("policy", "check").returncode == 0
    tried = json.loads(plan("policy", "test", "write_file", "--args", '{"path": "a", "content": ""}', "--json").stdout)
    assert (tried["decide"], tried["by"], tried["count"], tried["notAuthor"]) == ("ask", ["ann"], 1, False)
    other = plan("keys", "person", "bob")
    assert (other.returncode, "KEY_EXISTS" in other.stderr) == (2, True)
    refused = plan("approve", "p", "s", "--by", "bob")
    assert (refused.returncode, "signed with the key of ann" in refused.stderr) == (2, True)
