"""Settings: every default, and every bad value refused with the name of its variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.features import FEATURES
from plansurvive.features import left_out as sides_left_out
from plansurvive.features.limits.settings import LimitSettings
from plansurvive.runtime.feature_settings import why_unknown
from plansurvive.runtime.settings import SettingError, Settings, models, names


def read(tmp_path: Path, **variables: str) -> Settings:
    return Settings.read({"HOME": str(tmp_path), **variables})


def test_without_variables_the_documented_defaults_hold(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert settings.task_queue == "plans"
    assert settings.state_dir == tmp_path / ".local/state/plans"
    assert settings.cache_dir == tmp_path / ".cache/plans"
    assert (settings.approvals, settings.server, settings.auto_worker) == ("normal", "auto", True)
    assert (settings.inline_bytes, settings.max_activities, settings.grace) == (8_192, 100, 10.0)
    assert settings.workspace is None
    assert settings.tools == ()


def test_the_xdg_directories_are_honoured_and_empty_ones_are_not(tmp_path: Path) -> None:
    settings = read(tmp_path, XDG_STATE_HOME=str(tmp_path / "s"), XDG_CACHE_HOME="")
    assert settings.state_dir == tmp_path / "s/plans"
    assert settings.cache_dir == tmp_path / ".cache/plans"


def test_tools_are_separated_by_commas_and_files_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read(tmp_path, PLANS_TOOLS="my.tools, more.py,").tools == ("my.tools", str(tmp_path / "more.py"))


def test_temporal_variables_are_kept_as_they_are(tmp_path: Path) -> None:
    assert read(tmp_path, TEMPORAL_ADDRESS="h:1", OTHER="x").temporal == {"TEMPORAL_ADDRESS": "h:1"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PLANS_TASK_QUEUE", ""),
        ("PLANS_TASK_QUEUE", "two words"),
        ("PLANS_GRACE", "fast"),
        ("PLANS_GRACE", "-1"),
        ("PLANS_GRACE", "nan"),
        ("PLANS_GRACE", "1e9"),
        ("PLANS_MAX_ACTIVITIES", "0"),
        ("PLANS_MAX_ACTIVITIES", "1.5"),
        ("PLANS_INLINE_BYTES", "3"),
        ("PLANS_APPROVALS", "lax"),
        ("PLANS_SERVER", "cloud"),
        ("PLANS_GRPC_COMPRESSION", "zstd"),
        ("PLANS_AUTO_WORKER", "perhaps"),
        ("PLANS_MODEL", ""),
        ("PLANS_WORKSPACE", "/"),
        ("PLANS_WORKSPACE", "/no/such/directory"),
        ("PLANS_WORKSPACE", "/dev/null"),
        ("PLANS_STATE_DIR", "/dev/null"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(SettingError) as caught:
        read(tmp_path, **{name: text})
    assert caught.value.code == f"BAD_SETTING:{name}"
    assert caught.value.message.startswith(f"{name}: ")


def test_an_unknown_variable_with_our_prefix_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="did you mean PLANS_WORKSPACE") as caught:
        read(tmp_path, PLANS_WORKSPCE="x")
    assert caught.value.code == "BAD_SETTING:PLANS_WORKSPCE"


def test_a_setting_of_a_feature_is_read_with_the_others(tmp_path: Path) -> None:
    settings = read(tmp_path, PLANS_LIMITS="~/limits.toml")
    assert settings.of(LimitSettings).limits == Path.home() / "limits.toml"
    assert Settings.read({"HOME": str(tmp_path), **settings.as_environ()}) == settings
    assert settings.with_flags(limits=tmp_path / "other").of(LimitSettings).limits == tmp_path / "other"
    assert Settings(state_dir=tmp_path, cache_dir=tmp_path).of(LimitSettings) == LimitSettings()


def test_a_setting_of_a_feature_that_is_left_out_is_unknown_and_says_whose_it_was() -> None:
    others = tuple(name for name in FEATURES if name != "limits")
    left_out = [side.SETTINGS for side in sides_left_out("settings", others)]
    assert why_unknown("limits", names() - {"limits"}, left_out) == (
        "this program does not have the feature it belongs to, limits; remove the setting"
    )
    assert why_unknown("limitz", names(), left_out) == "unknown setting; did you mean PLANS_LIMITS?"


def test_no_two_settings_have_the_same_name() -> None:
    declared = [name for model in models() for name in model.model_fields]
    assert len(declared) == len(set(declared))


def test_all_bad_settings_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        read(tmp_path, PLANS_GRACE="x", PLANS_SERVER="y", PLANS_TEMPORAL="z", PLANS_CACHE="maybe")
    assert [line.partition(":")[0] for line in caught.value.message.splitlines()] == [
        "PLANS_SERVER",
        "PLANS_GRACE",
        "PLANS_CACHE",
        "PLANS_TEMPORAL",
    ]


def test_flags_replace_what_the_environment_says_and_are_checked_alike(tmp_path: Path) -> None:
    settings = read(tmp_path, PLANS_GRACE="3").with_flags(grace="4", task_queue=None, workspace=str(tmp_path))
    assert (settings.grace, settings.task_queue, settings.workspace) == (4.0, "plans", tmp_path)
    with pytest.raises(SettingError, match="PLANS_MAX_ACTIVITIES"):
        settings.with_flags(max_activities="many")


def test_settings_written_as_an_environment_read_back_the_same(tmp_path: Path) -> None:
    settings = read(tmp_path, PLANS_TOOLS="a,b.c", PLANS_AUTO_WORKER="off", PLANS_WORKSPACE=str(tmp_path))
    assert Settings.read(settings.as_environ()) == settings
