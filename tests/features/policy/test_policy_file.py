"""Reading policy.toml: every mistake at once, each with its line and what to write."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from plansurvive.features.policy.policy_file import policy_of, read
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.toml_lines import Lines
from tests.client.cli.command import plan

NOW = datetime(2026, 11, 28, tzinfo=UTC)
RULE = '[[rule]]\nname = "a"\ndecide = "ask"\n'


def key() -> str:
    made = Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"ed25519:{base64.b64encode(made).decode()}"


def mistakes(text: str) -> list[str]:
    return [str(each) for each in read(text, NOW).mistakes]


def test_the_examples_of_its_page_are_a_policy() -> None:
    page = (Path(__file__).parents[3] / "docs" / "policy.md").read_text("utf-8")
    text = re.sub(r"ed25519:\w+\.\.\.", lambda _: key(), "\n".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)))
    found = read(text, NOW)
    assert [*map(str, found.mistakes), *map(str, found.warnings)] == []
    assert found.policy is not None
    assert [each.rule.name for each in found.policy.rules] == ["status and tests", "documents", "release"]


ANN = f'[people]\nann = "{key()}"\n'
WRONG = {
    "decid": (f'{RULE}decid = "ask"', 4, "did you mean 'decide'"),
    "another name": (f'{RULE}approvers = "ann"', 4, "did you mean 'by'"),
    "no decision": ('[[rule]]\nname = "a"', 1, "write one of allow, ask, deny"),
    "no name": ('[[rule]]\ndecide = "ask"', 1, "every rule has a name"),
    "bad decision": ('[[rule]]\nname = "a"\ndecide = "yes"', 3, "'allow', 'ask' or 'deny'"),
    "same name": (f"{RULE}{RULE}", 5, "has that name already"),
    "bad glob": (f'{RULE}tool = "a[b"', 4, "has no `]`"),
    "stars inside": (f'{RULE}args.path = "docs/a**"', 4, "stands alone between slashes"),
    "bad regex": (f"{RULE}args.path = {{regex = '(?=a)'}}", 4, "RE2 has no look-around"),
    "bad condition": (f"{RULE}args.n = {{maximum = 3}}", 4, "{max = 10}"),
    "bad number": (f'{RULE}args.n = {{max = "3"}}', 4, "{max = 10}"),
    "a URL": (f'{RULE}host = "https://a.org"', 4, "write a host alone"),
    "empty command": (f'{RULE}command = [" "]', 4, "write the command"),
    "bad origin": (f'{RULE}origin = "robot"', 4, "'person', 'llm' or 'agent'"),
    "unknown group": (f'{RULE}starter = "group:opps"\n{ANN}[groups]\nops = ["ann"]', 4, "did you mean 'ops'"),
    "unknown member": (f'{ANN}[groups]\nops = ["anne"]', 4, "did you mean 'ann'"),
    "unknown person": (f'{RULE}by = "bob"\n{ANN}', 4, "add it to [people]"),
    "too many": (f'{RULE}by = "ann"\ncount = 2\n{ANN}', 5, "`by` names 1 people"),
    "nothing to override": (f'{RULE}override = ["ann"]\n{ANN}', 4, "there is nothing to override"),
    "no question": ('[[rule]]\nname = "a"\ndecide = "deny"\nexpires = "4h"', 4, "the rule does not ask"),
    "bad span": (f'{RULE}expires = "soon"', 4, '"4h"'),
    "bad key": ('[people]\nann = "ed25519:AAAA"', 2, "the key cannot be read"),
    "no key": ("[people]\nann = {}", 2, "give a `key`"),
    "same login": ('[people]\nann = {logins = ["a"]}\nbob = {logins = ["A"]}', 3, "ann has the login"),
    "same key": (f'{ANN}{ANN.splitlines()[1].replace("ann", "bob")}', 3, "ann has the same key"),
    "circle": (
        '[people]\na = {logins = ["a"]}\nb = {logins = ["b"]}\n[[delegation]]\nfrom = "a"\nto = "b"\n'
        'until = 2027-01-01T00:00:00Z\n[[delegation]]\nfrom = "b"\nto = "a"\nuntil = 2027-01-01T00:00:00Z',
        4, "leads back to a",
    ),
    "no zone": (
        '[people]\na = {logins = ["a"]}\nb = {logins = ["b"]}\n[[delegation]]\nfrom = "a"\nto = "b"\n'
        "until = 2027-01-01T00:00:00", 7, "with its zone",
    ),
    "no list of rules": ("rule = 5", 1, "rule: should be a list of tables: `[[rule]]`"),
    "no table of a rule": ("rule = [5]", 1, "rule 1: should be a table: `[[rule]]`, and below it `name = ...`"),
    "no arguments": (f"{RULE}args = 5", 4, "rule 'a': args: should name arguments"),
    "no person": ("[people]\nann = 5", 2, "people.ann: should be a table: `[people.ann]`, and below it `logins"),
    "one rule": ('[rule]\nname = "a"', 1, "should be a list of tables: `[[rule]]`"),
    "an argument": (f'{RULE}path = "docs/**"', 4, "did you mean 'args.path'"),
    "not TOML": ('[[rule]]\nname = "a\n', 2, "not TOML"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_has_its_line_and_its_mend(name: str) -> None:
    text, line, says = WRONG[name]
    found = mistakes(text)
    assert any(each.startswith((f"line {line}: ", f"line {line}, ")) and says in each for each in found), found
    assert read(text, NOW).policy is None


def test_mistakes_of_all_rules_are_said_at_once() -> None:
    text = f'{RULE}x = 1\n[[rule]]\nname = "b"\ndecide = "no"\n[people]\nann = 5\n'
    assert [int(each.split()[1][:-1]) for each in mistakes(text)] == [4, 7, 9]


def test_warnings_do_not_break_a_file() -> None:
    reading = read(
        f'{RULE}command = ["pytest*"]\n[[rule]]\nname = "all"\ndecide = "allow"\n'
        '[people]\na = {logins = ["a"]}\nb = {logins = ["b"]}\n'
        '[[delegation]]\nfrom = "a"\nto = "b"\nuntil = 2020-01-01T00:00:00Z',
        NOW,
    )
    assert reading.policy is not None
    assert [each.line for each in reading.warnings] == [4, 5, 14]
    assert "'pytest *'" in reading.warnings[0].text


def test_lines_of_keys_in_any_way_of_writing() -> None:
    lines = Lines(
        '# x = 1\na = """\n[b]\n"""\n\n[ "b" . c ]\nd = [\n  1, # ]\n  "]"]\n\'e.f\' = { g = 1 }\n[[r]]\nx.y = 1\n'
        "[[r]]\n[r.z]\nq = 'a # b = c'\nw = 2\n"
    )
    paths = {("a",): 2, ("b", "c", "d"): 7, ("b", "c", "e.f", "g"): 10, ("r", 0, "x", "y"): 12, ("r", 1): 13,
             ("r", 1, "z", "q"): 15, ("r", 1, "z", "w"): 16}  # fmt: skip
    assert {path: lines.of(path) for path in paths} == paths


def settings(tmp_path: Path, **more: str) -> Settings:
    return Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path), **more})


def test_without_a_file_there_is_no_policy_unless_one_is_named(tmp_path: Path) -> None:
    assert policy_of(settings(tmp_path)) is None
    with pytest.raises(SettingError, match="does not exist"):
        policy_of(settings(tmp_path, PLANS_POLICY=str(tmp_path / "other.toml")))


def test_a_file_that_others_may_write_is_no_policy(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(RULE)
    path.chmod(0o644)
    found = policy_of(settings(tmp_path))
    assert found is not None
    assert re.fullmatch("[0-9a-f]{64}", found.hash)
    for mode in (0o664, 0o646):
        path.chmod(mode)
        with pytest.raises(SettingError, match="chmod go-w"):
            policy_of(settings(tmp_path))


def test_a_broken_file_says_its_mistakes(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(f"{RULE}decid = 1")
    with pytest.raises(SettingError, match="line 4, rule 'a': decid: there is no such key"):
        policy_of(settings(tmp_path))


async def test_check_says_mistakes_and_warnings(tmp_path: Path, state_dir: Path) -> None:
    environ = {"HOME": str(tmp_path), "PLANS_STATE_DIR": str(state_dir)}
    assert "no policy" in (await plan(environ, "policy", "check")).out
    state_dir.mkdir(exist_ok=True)
    file = state_dir / "policy.toml"
    other = '[[rule]]\nname = "b"\ndecide = "ask"\ntool = "write_file"\nargs.pth = "a"'
    file.write_text(f'{RULE}tool = "write_fil"\n{other}')
    shown = await plan(environ, "policy", "check")
    assert shown.code == 0
    assert "did you mean 'write_file'" in shown.out
    assert "did you mean 'path'" in shown.out
    assert "policy.toml: 2 rules, hash" in shown.out
    file.write_text(other)
    assert "policy.toml: 1 rule, hash" in (await plan(environ, "policy", "check")).out
    file.write_text(f"{RULE}decid = 1")
    shown = await plan(environ, "policy", "check", "--json")
    assert shown.code == 2
    assert shown.json["mistakes"][0]["line"] == 4
    assert f"{file}: line 4, rule 'a': decid: there is no" in (await plan(environ, "policy", "check")).out


async def test_test_says_what_would_come_of_a_call(
    tmp_path: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"HOME": str(tmp_path), "PLANS_STATE_DIR": str(state_dir)}
    state_dir.mkdir(exist_ok=True)
    (state_dir / "policy.toml").write_text(
        '[[rule]]\nname = "docs"\ntool = "write_file"\nargs.path = "docs/**"\ndecide = "allow"\n'
    )
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "out").symlink_to("..")
    monkeypatch.chdir(tmp_path)

    async def tried(path: str) -> Any:
        args = json.dumps({"path": path, "content": ""})
        return (await plan(environ, "policy", "test", "write_file", "--args", args, "--json")).json

    assert (await tried("docs/a.md"))["decide"] == "allow"
    assert (await tried("docs/a.md"))["rules"] == ["docs"]
    assert (await tried("docs/out/a.md"))["decide"] is None
    assert (await tried("/etc/passwd"))["decide"] == "ask"
    assert (await plan(environ, "policy", "test", "write_fil")).code == 2
