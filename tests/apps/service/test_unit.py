"""What is written for systemd and launchd means what was meant, whatever is in paths and variables."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.apps.service.install import Service
from plansurvive.apps.service.unit import Unit, launchd_text, systemd_text, variables_of, variables_text
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import Settings
from tests.kit.lacking import end

ODD = "a b%c$d"
SHOW = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\n\t"), max_size=30)


def unit(directory: Path, *arguments: str) -> Unit:
    directory.mkdir(exist_ok=True)
    program = directory / "py thon"
    program.symlink_to(sys.executable)
    command = [str(program), *(arguments or ("-m", "plansurvive", "up", "back\\slash", "100%", "$HOME"))]
    return Unit(command, directory, directory / "service.env", directory / "up.log", grace=10)


def read_by_a_shell(text: str, file: Path) -> dict[str, str]:
    """The variables as the shell of launchd's command reads them."""
    file.write_text(text)
    shell = ["/bin/sh", "-c", 'set -a && . "$0" && exec "$@"', str(file), sys.executable, "-c", SHOW]
    done = subprocess.run(shell, env={}, capture_output=True, check=True)
    return dict(json.loads(done.stdout)[1])


def test_systemd_accepts_the_unit_with_odd_paths(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        end("systemd-analyze", "systemd-analyze is not installed", os.environ)
    made = unit(tmp_path / ODD)
    made.variables.write_text(variables_text({}))
    file = tmp_path / "plans.service"
    file.write_text(systemd_text(made))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    command = ["systemd-analyze", "verify", "--user", "--recursive-errors=no", str(file)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_restarts_for_ever_and_starts_at_login(tmp_path: Path) -> None:
    rows = systemd_text(unit(tmp_path / "x")).splitlines()
    assert {"Restart=on-failure", "StartLimitIntervalSec=0", "WantedBy=default.target", "TimeoutStopSec=55"} <= set(
        rows
    )


def test_what_no_unit_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="use another directory"):
        systemd_text(unit(tmp_path / 'a"b'))
    with pytest.raises(PlanError, match="choose another directory"):
        systemd_text(Unit(["/x"], tmp_path / "a\nb", tmp_path, tmp_path, 1))
    for name, text in {"A B": "x", "A": "\x00", "B": "\x1b[2J", "": "x", "C": "\ud800"}.items():
        with pytest.raises(PlanError, match="characters that a service cannot be given") as caught:
            variables_text({name: text})
        assert caught.value.code == "SERVICE_REFUSED"


def test_launchd_gets_a_property_list_whose_command_a_shell_gives_its_variables(tmp_path: Path) -> None:
    made = unit(tmp_path / ODD, "-c", SHOW, "two words", "$HOME")
    made.variables.write_text(variables_text({"PLANS_X": 'a "b" $c `d` \\e'}))
    found = plistlib.loads(launchd_text(made).encode())
    assert (found["RunAtLoad"], found["KeepAlive"], found["Umask"]) == (True, {"SuccessfulExit": False}, 0o077)
    assert "PLANS_X" not in launchd_text(made)
    done = subprocess.run(found["ProgramArguments"], env={}, capture_output=True, check=True)
    arguments, variables = json.loads(done.stdout)
    assert arguments == ["two words", "$HOME"]
    assert variables["PLANS_X"] == 'a "b" $c `d` \\e'


def test_an_installed_service_tells_whose_it_is(tmp_path: Path) -> None:
    made = unit(tmp_path / ODD)
    assert variables_of(systemd_text(made)) == variables_of(launchd_text(made)) == str(made.variables)
    assert [variables_of(text) for text in ("", "[Service]\nExecStart=/bin/true\n", "<plist></plist>")] == [None] * 3


@pytest.mark.slow
@pytest.mark.in_turn
@given(st.dictionaries(st.from_regex(r"PLANS_[A-Z]{1,8}", fullmatch=True), _TEXT, max_size=3))
def test_a_shell_reads_the_variables_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, found: dict[str, str]
) -> None:
    read = read_by_a_shell(variables_text(found), tmp_path_factory.mktemp("variables") / "service.env")
    assert {name: read[name] for name in found} == found


def test_the_service_gets_what_concerns_plans_with_absolute_paths_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").touch()
    environ = {
        "HOME": str(tmp_path), "PATH": "/usr/bin", "PLANS_TOOLS": "own.py", "OPENAI_API_KEY": "sk-1", "SECRET": "no",
        "TEMPORAL_ADDRESS": "t:7233", "TEMPORAL_TLS_CLIENT_KEY_PATH": "key.pem", "AWS_SECRET_ACCESS_KEY": "aws",
    }  # fmt: skip
    given_ = Service(Settings.read(environ), environ).given()
    assert given_ == {
        "PATH": "/usr/bin", "PLANS_TOOLS": str(tmp_path / "own.py"), "OPENAI_API_KEY": "sk-1",
        "TEMPORAL_ADDRESS": "t:7233", "TEMPORAL_TLS_CLIENT_KEY_PATH": str(tmp_path / "key.pem"),
        "PLANS_STATE_DIR": str(tmp_path / ".local/state/plans"), "PLANS_CACHE_DIR": str(tmp_path / ".cache/plans"),
    }  # fmt: skip
    stored = environ | {"PLANS_STORAGE": "s3://bucket"}
    assert Service(Settings.read(stored), stored).given()["AWS_SECRET_ACCESS_KEY"] == "aws"


def test_without_a_manager_nothing_is_written_and_the_way_out_is_named(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    environ = {"HOME": str(tmp_path), "PATH": str(programs)}
    service = Service(Settings.read(environ), environ, "linux")
    with pytest.raises(PlanError, match="there is no `systemctl` here; let whatever starts programs"):
        service.install()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bin"]
    assert service.state().is_good
    assert service.uninstall().startswith("Nothing was installed")


def test_the_service_of_another_state_directory_is_left_alone(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    other = Service(Settings.read(environ | {"PLANS_STATE_DIR": str(tmp_path / "other")}), environ, "linux")
    other.path.parent.mkdir(parents=True)
    other.path.write_text(other.text())
    service = Service(Settings.read(environ), environ, "linux")
    for act in (service.install, service.uninstall):
        with pytest.raises(PlanError, match="another state directory"):
            act()
    assert service.state().is_good
    assert stat.S_ISREG(other.path.stat().st_mode)
