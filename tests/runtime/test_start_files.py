"""The files that a worker reads at its start: a change is seen once, and replaces the worker in the background."""

from __future__ import annotations

import subprocess

import pytest

from plansurvive.runtime import up
from plansurvive.runtime.background_worker import worker_command
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.start_files import StartFiles, check_start_files, sentence, start_files

pytestmark = pytest.mark.uses("coding_agents", "limits", "notify", "quotas", "secrets", "tool_servers")
NAMES = ["agents.toml", "limits.toml", "mcp.toml", "notify.toml", "quotas.toml", "secrets.toml"]


def test_they_are_those_that_features_name(settings: Settings) -> None:
    assert sorted(path.name for path in start_files(settings)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_change_is_seen_once(settings: Settings, name: str) -> None:
    files, path = StartFiles(settings), settings.state_dir / name
    assert files.changed() == []
    path.write_text("# new")
    assert files.changed() == [str(path)]
    assert files.changed() == []
    path.write_text("# newer")
    assert files.changed() == [str(path)]
    path.unlink()
    assert files.changed() == [str(path)]
    assert sentence([str(path)]).startswith(f"{path} has changed since the worker started; it holds once")


def test_no_running_plan_up_has_read_anything(settings: Settings) -> None:
    (settings.state_dir / "agents.toml").write_text("# new")
    assert up.changed_since(settings) == []


@pytest.mark.parametrize("name", NAMES)
def test_one_that_no_worker_could_start_with_is_refused_before_that(settings: Settings, name: str) -> None:
    check_start_files(settings)
    path = settings.state_dir / name
    path.write_text("nonsense = 1")
    path.chmod(0o600)
    with pytest.raises(SettingError, match=f"{path}: line 1, nonsense: there is no such key") as caught:
        check_start_files(settings)
    assert caught.value.code.startswith("BAD_SETTING:PLANS_")


def test_a_worker_says_so_before_it_looks_for_a_server(settings: Settings) -> None:
    path = settings.state_dir / "limits.toml"
    path.write_text("[tools.http_request]\nrate = 60\n")
    path.chmod(0o600)
    environ = {**settings.as_environ(), "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    done = subprocess.run(worker_command(), env=environ, capture_output=True, text=True, check=False)
    text = f"BAD_SETTING: PLANS_LIMITS: {path}: line 2, tools.http_request.rate: write a rate as text"
    assert (done.returncode, done.stderr.startswith(text)) == (2, True), done.stderr
