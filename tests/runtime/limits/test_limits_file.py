"""limits.toml is the operator's: a mistake keeps a worker from starting, and says where it is and what was meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plansurvive.features.limits.limits_file import read_limits
from plansurvive.runtime.settings import SettingError, Settings

FILE = """
[tools.http_request]
rate = ["10/second", "600/minute"]
concurrency = 4
key = "host(args.url)"

[tools."tracker.*"]
rate = "60/minute"
key = "args.target.name"

[queues.gpu]
concurrency = 2

[llm]
requests = "60/minute"
tokens = "90000/minute"
concurrency = 8
"""


def settings(directory: Path, text: str | None, **more: str) -> Settings:
    if text is not None:
        (directory / "limits.toml").write_text(text)
    return Settings.read({"HOME": str(directory), "PLANS_STATE_DIR": str(directory), **more})


def refused(directory: Path, text: str) -> str:
    with pytest.raises(SettingError) as caught:
        read_limits(settings(directory, text))
    assert caught.value.code == "BAD_SETTING:PLANS_LIMITS"
    assert str(directory / "limits.toml") in caught.value.message
    return caught.value.message


def test_every_kind_of_limit_is_read_and_said_on_a_line(tmp_path: Path) -> None:
    found = read_limits(settings(tmp_path, FILE))
    assert found.texts == {
        "tools.http_request": "tools.http_request: 10/second, 600/minute, 4 at a time, for each host(args.url), "
        "not used now",
        "tools.tracker.*": "tools.tracker.*: 60/minute, for each args.target.name, not used now",
        "queues.gpu": "queues.gpu: 2 at a time, not used now",
        "llm": "llm: 60/minute, 8 at a time, not used now",
        "llm.tokens": "llm.tokens: 90000/minute, not used now",
    }
    assert list(found.of_tool("tracker.list")) == ["tracker.*"]
    assert [(each.path, each.is_host) for each in found.tools.values()] == [
        (("url",), True),
        (("target", "name"), False),
    ]


def test_without_a_file_there_are_no_limits_unless_one_is_named(tmp_path: Path) -> None:
    assert read_limits(settings(tmp_path, None)).is_empty
    assert read_limits(settings(tmp_path, "")).is_empty
    named = settings(tmp_path, None, PLANS_LIMITS=str(tmp_path / "other.toml"))
    with pytest.raises(SettingError, match=r"other\.toml: it does not exist; create it, or name another"):
        read_limits(named)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[tools", "it is not TOML"),
        ("#" * 1024 * 1024 + "\n", "it is larger than 1,048,576 bytes"),
        ("[tool.x]\nrate = '1/second'\n", "tool: there is no such key; did you mean 'tools'?"),
        ("[tools.x]\nrates = '1/second'\n", "tools.x.rates: there is no such key; did you mean 'rate'?"),
        ("[queues.q]\nkey = 'args.a'\n", "queues.q.key: there is no such key; there are rate, concurrency"),
        ("[llm]\nrate = '1/second'\n", "llm.rate: there is no such key; there are requests, tokens, concurrency"),
        ("[tools.x]\n", "tools.x: it limits nothing; write a rate, concurrency or both"),
        ("[queues.q]\n", "queues.q: it limits nothing"),
        ("[tools.x]\nkey = 'args.a'\n", "tools.x: it limits nothing"),
        ("[tools.x]\nrate = 60\n", 'tools.x.rate: write a rate as text, such as "60/minute"'),
        ("[tools.x]\nrate = '60'\n", "tools.x.rate: "),
        ("[tools.x]\nrate = '60/fortnight'\n", "tools.x.rate: "),
        ("[tools.x]\nrate = []\n", "tools.x: it limits nothing"),
        (f"[tools.x]\nrate = {['1/second'] * 6}\n", "tools.x.rate: "),
        ("[tools.x]\nconcurrency = 0\n", "tools.x.concurrency: "),
        ("[tools.x]\nconcurrency = '2'\n", "tools.x.concurrency: "),
        ("[tools.x]\nconcurrency = true\n", "tools.x.concurrency: "),
        ("[tools.x]\nrate = '1/second'\nkey = 'url'\n", 'tools.x.key: write which argument it is, such as'),
        ("[tools.x]\nrate = '1/second'\nkey = 'host(args.url'\n", "tools.x.key: write which argument"),
        ("[tools.x]\nrate = '1/second'\nkey = 'args.a[0]'\n", "tools.x.key: write which argument"),
        ("[tools.'a b']\nrate = '1/second'\n", "tools.a b: "),
        ("tools = 3\n", 'line 1, tools: should be a table: `[tools.http_request]`, and below it `rate = "60/minute"`'),
        ("\n[tools]\nx = '5/second'\n", "line 3, tools.x: should be a table: `[tools.http_request]`, and below it"),
        ("[[queues]]\nname = 'x'\n", "line 1, queues: should be a table: `[queues.gpu]`, and below it `concurrency"),
        ("llm = 5\n", 'line 1, llm: should be a table: `[llm]`, and below it `requests = "60/minute"`'),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place_and_what_to_do(tmp_path: Path, text: str, part: str) -> None:
    assert part in refused(tmp_path, text)


def test_many_mistakes_are_told_ten_at_a_time(tmp_path: Path) -> None:
    text = "".join(f"[tools.t{at}]\nrate = '60'\n" for at in range(100))
    assert refused(tmp_path, text).count("tools.t") == 10


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_change_is_refused(tmp_path: Path, mode: int) -> None:
    """They could lift the limits of a service that somebody pays for, or stop every plan."""
    found = settings(tmp_path, FILE)
    (tmp_path / "limits.toml").chmod(mode)
    with pytest.raises(SettingError, match="others may change it, and lift the limits or let nothing start; run"):
        read_limits(found)
    (tmp_path / "limits.toml").chmod(0o644)
    assert not read_limits(found).is_empty


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    found = settings(tmp_path, FILE)
    os.chown(tmp_path / "limits.toml", 65_534, -1)
    with pytest.raises(SettingError, match=r"belongs to another user, who could lift the limits .*; make it yours"):
        read_limits(found)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "limits.toml").symlink_to("/dev/zero")
    with pytest.raises(SettingError, match="it is not a file"):
        read_limits(settings(tmp_path, None))
