"""The TOML files of the operator answer mistakes alike: file, line, key, what is allowed, which key was meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from plansurvive.client.doctor import Finding, Verdict
from plansurvive.features.coding_agents.agents_file import read_agents
from plansurvive.features.limits.limits_file import read_limits
from plansurvive.features.notify.targets import read_targets
from plansurvive.features.quotas.quotas_file import read_quotas
from plansurvive.features.secrets.secrets_file import read_entries
from plansurvive.features.tool_servers.servers import read_servers
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.sides import sides

pytestmark = pytest.mark.uses("coding_agents", "limits", "notify", "policy", "quotas", "secrets", "tool_servers")


class File(NamedTuple):
    """One of the files: how it is read, a table of it, a row, the row with a slip, and one of a wrong type."""

    name: str
    read: Callable[[Settings], Any]
    table: str
    row: str
    slip: str
    wrong: str
    allowed: str

    @property
    def header(self) -> str:
        return f"[{self.table}.a]"


FILES = [
    File("agents.toml", read_agents, "agents", 'command = ["x"]', 'comand = ["x"]', "command = 5", "a list"),
    File("limits.toml", read_limits, "tools", 'rate = "5/s"', 'rat = "5/s"', 'concurrency = "x"', "a whole number"),
    File("notify.toml", read_targets, "targets", 'apprise = "env:X"', 'aprise = "env:X"', "timeout = []", "a number"),
    File("mcp.toml", read_servers, "servers", 'command = "x"', 'comand = "x"', "command = 5", "a string"),
    File("secrets.toml", read_entries, "secrets", 'from = "env:X"', 'form = "env:X"', "tools = 5", "a list"),
]
TYPES = pytest.mark.parametrize("file", FILES, ids=[each.name for each in FILES])


def refused(file: File, settings: Settings, text: str) -> str:
    """What is said of this content."""
    path = settings.state_dir / file.name
    path.write_text(text)
    with pytest.raises(SettingError) as caught:
        file.read(settings)
    assert f"{path}: " in caught.value.message
    return caught.value.message.partition(f"{path}: ")[2]


@TYPES
def test_a_key_that_means_nothing_is_named_with_the_one_that_was_meant(file: File, settings: Settings) -> None:
    key, meant = file.slip.partition(" ")[0], file.row.partition(" ")[0]
    said = refused(file, settings, f"\n{file.header}\n{file.slip}\n")
    assert f"line 3, {file.header[1:-1]}.{key}: there is no such key; did you mean '{meant}'?" in said
    said = refused(file, settings, f"{file.header}\n{file.row}\n\n[{file.table[:-1]}.b]\n{file.row}")
    assert f"line 4, {file.table[:-1]}: there is no such key; did you mean '{file.table}'?" in said
    said = refused(file, settings, f"{file.header}\n{file.row}\nqqqqqq = 1")
    assert f"line 3, {file.header[1:-1]}.qqqqqq: there is no such key; there are " in said
    assert meant in said


@TYPES
def test_a_value_of_a_wrong_type_is_answered_with_what_it_should_be(file: File, settings: Settings) -> None:
    said = refused(file, settings, f"{file.header}\n\n{file.wrong}")
    key = file.wrong.partition(" ")[0]
    assert f"line 3, {file.header[1:-1]}.{key}: should be {file.allowed}" in said


@TYPES
def test_what_is_no_table_is_answered_with_one(file: File, settings: Settings) -> None:
    said = refused(file, settings, f"{file.table} = 5")
    assert f"line 1, {file.table}: should be a table: `[{file.table}." in said
    said = refused(file, settings, f"[{file.table}]\na = 5")
    assert f"line 2, {file.table}.a: should be a table: `[{file.table}." in said
    assert "and below it `" in said


@TYPES
def test_what_is_not_toml_is_refused_with_its_place(file: File, settings: Settings) -> None:
    assert refused(file, settings, f"{file.header}\ncommand == 5").startswith("line 2: it is not TOML")


@TYPES
@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ("key = allow", "a text needs quotes: key ="),
        ("key = git status  # all", "a text needs quotes: key ="),
        ("key = True", "true and false are written in lower case: key = true"),
        ('key: "x"', "`=` separates a key from its value: key ="),
        ('"key": "x",', "`=` separates a key from its value: key ="),
        ("key = 1\nkey = 2", "the key is given twice"),
        ('key = "x\n', "a text ends on the line on which it begins"),
        ("key =", "a value is missing"),
    ],
)
def test_what_other_formats_have_is_answered_with_the_form_of_toml(
    file: File, settings: Settings, row: str, wanted: str
) -> None:
    said, line = refused(file, settings, f"{file.header}\n{row}"), 1 + len(row.splitlines())
    assert said.startswith(f"line {line}: it is not TOML: {wanted}")


def test_a_quota_that_is_no_number_is_answered_alike(settings: Settings) -> None:
    quotas = File("quotas.toml", read_quotas, "labels", "", "", "", "")
    assert "line 2, labels.a: should be a whole number" in refused(quotas, settings, '[labels]\na = "x"')
    said = refused(quotas, settings, '[labels]\na = "3"')
    assert said.endswith("should be a whole number; write it without quotes")
    assert "line 1, label: there is no such key; did you mean 'labels'?" in refused(quotas, settings, "[label]\na = 1")
    assert "line 1, labels: should be a table: `[labels]`" in refused(quotas, settings, "labels = 5")
    assert refused(quotas, settings, "labels == 5").startswith("line 1: it is not TOML")


def test_a_value_that_may_be_secret_is_quoted_nowhere(settings: Settings) -> None:
    for file in FILES:
        for row in ("x = sk1234", "x: sk1234", '"x": "sk1234",', 'x = "sk1234'):
            assert "sk1234" not in refused(file, settings, f"{file.header}\n{row}")
        key = file.row.partition(" ")[0]
        for row in (f'{key} = {{sk1234 = "sk1234"}}', 'x = "sk1234"'):
            assert '"sk1234"' not in refused(file, settings, f"{file.header}\n{row}")


@TYPES
def test_a_name_without_its_table_is_answered_with_the_table(file: File, settings: Settings) -> None:
    said = refused(file, settings, f"[qqqqqq]\n{file.row}")
    assert f"line 1, qqqqqq: there is no such key; write `{file.header.partition('.')[0]}.qqqqqq]`" in said
    if file.name in ("mcp.toml", "secrets.toml", "agents.toml"):
        said = refused(file, settings, "QQQQQQ = 5")
        assert f"QQQQQQ: there is no such key; write `[{file.table}.QQQQQQ]`, and below it `" in said


@TYPES
def test_json_is_answered_with_the_form_of_toml(file: File, settings: Settings) -> None:
    assert refused(file, settings, '{"servers": {}}').startswith(
        "line 1: it is not TOML but JSON; a table is written as `["
    )


def test_keys_of_other_programs_are_answered_with_ours(settings: Settings) -> None:
    for name, key, wanted in (
        ("mcp.toml", "type", "leave it out: `command` or `url` says"),
        ("mcp.toml", "headers", "a bearer token is `token ="),
        ("secrets.toml", "value", "the file says where a secret is"),
        ("notify.toml", "url", 'a service that Apprise knows is `apprise = "mailtos://'),
    ):
        file = next(each for each in FILES if each.name == name)
        said = refused(file, settings, f'{file.header}\n{file.row}\n{key} = "x"')
        assert f"{key}: there is no such key; {wanted}" in said


DOCTORS = [*(each.name for each in FILES), "policy.toml", "quotas.toml"]


@pytest.mark.parametrize("name", DOCTORS)
def test_doctor_says_what_is_wrong_with_each_file(settings: Settings, name: str) -> None:
    def found() -> list[Finding]:
        return [each for side in sides("doctor") for each in side.findings(settings, {})]

    before = found()
    path = settings.state_dir / name
    path.write_text("x == 5\n")
    bad = [each for each in found() if each not in before]
    assert [each.verdict for each in bad] == [Verdict.BAD]
    assert f"{path}: line 1: it is not TOML" in bad[0].text


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        ("limits.toml", '[tools.a]\nrate = "5/second"\n[llm]\nconcurrency = 2\n', "limits.toml: 2 limits"),
        ("secrets.toml", '[secrets.a]\nfrom = "env:X"\ntools = ["run_command"]\n', "secrets.toml: 1 secret"),
        ("policy.toml", '[[rule]]\nname = "a"\ntool = "write_file"\ndecide = "ask"\n', "policy.toml: 1 rule"),
    ],
)
def test_doctor_says_how_much_is_in_a_file(settings: Settings, name: str, text: str, row: str) -> None:
    (settings.state_dir / name).write_text(text)
    assert row in [each.text for side in sides("doctor") for each in side.findings(settings, {})]
