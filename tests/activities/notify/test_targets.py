"""Targets are the operator's: read strictly, and never shown with what is secret in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from plansurvive.features.notify.targets import key_bytes, read_targets, secret_of
from plansurvive.features.notify.webhook import headers, signature
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.model import Plan
from plansurvive.plans.model.notify import NotifyRule
from plansurvive.runtime.settings import SettingError, Settings
from tests.kit.sinks import KEY

URL = "https://user:hunter2secret@hooks.example.org/T0/B0"


def settings(directory: Path, text: str | None) -> Settings:
    if text is not None:
        (directory / "notify.toml").write_text(text)
    return Settings.read({"HOME": str(directory), "PLANS_STATE_DIR": str(directory)})


def plan_with(notify: object) -> Plan | list[str]:
    found = read_plan({"steps": [{"id": "a", "tool": "read_file", "args": {}}], "notify": notify})
    return [f"{each.field}: {each.message}" for each in found] if isinstance(found, list) else found


def test_without_a_file_there_are_no_targets(tmp_path: Path) -> None:
    assert read_targets(settings(tmp_path, None)).targets == {}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[targets.a]\n", "either `apprise` or `webhook`"),
        (f'[targets.a]\nwebhook = "{URL}"\n', "needs a `key`"),
        (f'[targets.a]\napprise = "{URL}"\nwebhook = "{URL}"\nkey = "{KEY}"\n', "either"),
        (f'[targets.a]\napprise = "{URL}"\nurl = "{URL}"\n', "targets.a.url"),
        (f'[targets."a b"]\napprise = "{URL}"\n', "targets"),
        ('[[default]]\nto = "teem"\n', "no target 'teem'"),
        ("[targets", "it is not TOML"),
        ("#" * 1024 * 1024 + "\n", "larger than 1,048,576 bytes"),
    ],
)
def test_a_file_that_is_wrong_is_refused_without_its_secrets(text: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        read_targets(settings(tmp_path, text))
    assert what in caught.value.message
    assert "hunter2" not in caught.value.message
    assert caught.value.code == "BAD_SETTING:PLANS_NOTIFY"


def test_a_file_that_others_may_change_is_refused(tmp_path: Path) -> None:
    """They could have one-time links sent to themselves, which decide without a login."""
    found = settings(tmp_path, f'[targets.a]\nwebhook = "{URL}"\nkey = "{KEY}"\n')
    (tmp_path / "notify.toml").chmod(0o620)
    with pytest.raises(SettingError, match="others may change it, and have links that decide sent to themselves; run"):
        read_targets(found)


def test_targets_do_not_show_their_secrets(tmp_path: Path) -> None:
    found = read_targets(settings(tmp_path, f'[targets.a]\nwebhook = "{URL}"\nkey = "{KEY}"\n'))
    assert "hunter2" not in repr(found)
    assert KEY not in repr(found)


def test_a_secret_is_in_a_variable_a_file_or_written_down(tmp_path: Path) -> None:
    (tmp_path / "x.url").write_text(f"{URL}\n")
    file = tmp_path / "notify.toml"
    assert secret_of(SecretStr("env:X"), file, {"X": URL}) == URL
    assert secret_of(SecretStr("file:x.url"), file) == URL
    assert secret_of(SecretStr(URL), file) == URL
    for missing, said in (("env:Y", "the variable Y is not set"), ("file:y.url", "y.url cannot be read")):
        with pytest.raises(SettingError, match=f"notify.toml: .*{said}"):
            secret_of(SecretStr(missing), file, {})


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_!!!", "whsec_c2hvcnQ=", "whsec_" + "A" * 400])
def test_a_weak_key_is_refused(text: str) -> None:
    with pytest.raises(SettingError):
        key_bytes(text)


def test_a_signature_is_that_of_the_standard() -> None:
    # The example of the reference libraries of Standard Webhooks.
    key = key_bytes("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    wanted = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == wanted
    both = headers([key, key_bytes(KEY)], "msg_1", 1, body)["webhook-signature"].split(" ")
    assert len(both) == 2


@pytest.mark.parametrize("name", ["https://evil.example", "mailto://x", "", "a b", "../x", "x" * 65])
def test_a_plan_cannot_name_an_address(name: str) -> None:
    for notify in (name, [name], {"to": name}, {"to": "a", "escalate": {"after": 1, "to": name}}):
        found = plan_with(notify)
        assert isinstance(found, list)
        assert "addresses and secrets belong there" in found[0]


@pytest.mark.parametrize(
    ("notify", "rules"),
    [
        ("team", [NotifyRule(to="team")]),
        (["team", {"to": "b", "on": "failed"}], [NotifyRule(to="team"), NotifyRule(to="b", on=["failed"])]),
        ({"to": "a", "remind": "1h", "on": ["awaiting"]}, [NotifyRule(to="a", remind=3600.0, on=["awaiting"])]),
    ],
)
def test_short_forms_are_rules(notify: object, rules: list[NotifyRule]) -> None:
    found = plan_with(notify)
    assert isinstance(found, Plan)
    assert found.notify == rules


@pytest.mark.parametrize("remind", [0, -1, "1w", "h", "1e3s", True, 1e9, "99999999d"])
def test_a_span_that_is_none_is_refused(remind: object) -> None:
    assert isinstance(plan_with({"to": "a", "remind": remind}), list)
