"""Each weakness of a machine is found where it is, and nowhere else: real files, modes and settings of a kernel."""

from __future__ import annotations

import os
import pwd
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plansurvive.plans import error_codes
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import cache_folder
from plansurvive.runtime.weaknesses import Weakness, of_crashes, of_user_namespaces, other_people, weaknesses
from tests.test_imports import ROOT

SAFE_PATH = "/usr/bin:/bin"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that other users may pass, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture
def variables(place: Path) -> dict[str, str]:
    """The environment of a process whose own directories are as they should be."""
    for name in ("state", "home", "workspace"):
        (place / name).mkdir(mode=0o700)
    return {
        "PATH": SAFE_PATH,
        "HOME": str(place / "home"),
        "PLANS_STATE_DIR": str(place / "state"),
        "PLANS_CACHE_DIR": str(place / "cache"),
        "PLANS_WORKSPACE": str(place / "workspace"),
    }


def found(variables: dict[str, str]) -> dict[str, str]:
    """The text of each weakness by its code, but for those of the machine that runs the tests."""
    every = weaknesses(Settings.read(variables), variables)
    return {
        code: text for code, text in every if code not in ("OTHER_USERS", "CRASHES_COLLECTED", "TEMPORAL_PASSED_OVER")
    }


def test_a_machine_without_weaknesses_has_none(variables: dict[str, str]) -> None:
    assert found(variables) == {}


def _open_state(place: Path, _: dict[str, str]) -> str:
    (place / "state").chmod(0o755)
    return f"chmod 700 {place / 'state'}"


def _open_workspace(place: Path, _: dict[str, str]) -> str:
    (place / "workspace").chmod(0o777)
    return f"chmod o-w {place / 'workspace'}"


def _open_programs(place: Path, variables: dict[str, str]) -> str:
    (place / "programs").mkdir()
    (place / "programs").chmod(0o777)
    variables["PATH"] += f":{place / 'programs'}"
    return f"chmod o-w {place / 'programs'}"


def _programs_of_the_workspace(place: Path, variables: dict[str, str]) -> str:
    (place / "workspace" / "bin").mkdir()
    (place / "link").symlink_to(place / "workspace" / "bin")
    variables["PATH"] = f"{place / 'link'}:{SAFE_PATH}"
    return "remove it"


def _relative(_: Path, variables: dict[str, str]) -> str:
    variables["PATH"] = f"bin:{SAFE_PATH}"
    return "'bin'"


def _empty(_: Path, variables: dict[str, str]) -> str:
    variables["PATH"] = f"{SAFE_PATH}:"
    return "''"


def _key(place: Path, variables: dict[str, str]) -> str:
    folder = place / "workspace"
    path = folder / ".env"
    path.write_text("OPENAI_API_KEY=sk-123\n")
    path.chmod(0o644)
    folder.chmod(0o755)
    return f"chmod 600 {path}"


def _login(_: Path, variables: dict[str, str]) -> str:
    variables |= {"PLANS_WEB_PROXY_HEADER": "X-User", "PLANS_WEB_PROXY_FROM": "10.0.0.1"}
    return "PLANS_DECISIONS=signed"


def _unchecked(_: Path, variables: dict[str, str]) -> str:
    program = cache_folder(Settings.read(variables)) / "temporal"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return f"rm {program}"


@pytest.mark.parametrize(
    ("code", "weaken"),
    [
        ("STATE_READABLE", _open_state),
        ("WORKSPACE_WRITABLE", _open_workspace),
        ("PATH_WRITABLE", _open_programs),
        ("PATH_IN_WORKSPACE", _programs_of_the_workspace),
        ("PATH_RELATIVE", _relative),
        ("PATH_RELATIVE", _empty),
        ("KEY_READABLE", _key),
        ("TEMPORAL_UNCHECKED", _unchecked),
        ("WEB_UNSIGNED", _login),
    ],
)
def test_each_weakness_is_named_with_what_mends_it(
    code: str, weaken: Callable[[Path, dict[str, str]], str], variables: dict[str, str], place: Path
) -> None:
    mends = weaken(place, variables)
    assert list(found(variables)) == [code]
    assert mends in found(variables)[code]


def test_a_key_that_nobody_else_can_read_is_no_weakness(variables: dict[str, str], place: Path) -> None:
    path = place / "workspace" / ".env"
    path.write_text("OPENAI_API_KEY=sk-123\n")
    path.chmod(0o600)
    (place / "home" / ".env").write_text("COLOUR=red\n")
    assert found(variables) == {}


def entry(name: str, uid: int, shell: str) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", f"/home/{name}", shell))


def test_people_who_can_log_in_are_told_from_services() -> None:
    known = [
        entry("root", 0, "/bin/bash"),
        entry("daemon", 1, "/usr/sbin/nologin"),
        entry("me", os.geteuid(), "/bin/bash"),
        entry("zoe", 2_001, "/bin/zsh"),
        entry("ann", 2_002, ""),
        entry("ci", 2_003, "/usr/sbin/nologin"),
        entry("nobody", 65_534, "/bin/sh"),
    ]
    assert other_people(known) == ["ann", "zoe"]


def test_signed_decisions_are_recommended_where_other_people_can_log_in(variables: dict[str, str]) -> None:
    people = other_people(pwd.getpwall())
    for decisions, wanted in (("open", bool(people)), ("signed", False)):
        settings = Settings.read(variables | {"PLANS_DECISIONS": decisions})
        texts = [text for code, text in weaknesses(settings, variables) if code == "OTHER_USERS"]
        assert [name in text for text in texts for name in people[:1]] == [True] * wanted


@pytest.mark.parametrize(
    ("name", "text", "mends"),
    [
        ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces="),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "/etc/apparmor.d/bwrap"),
    ],
)
def test_settings_of_the_kernel_that_keep_bubblewrap_away_are_named(
    tmp_path: Path, name: str, text: str, mends: str
) -> None:
    setting = tmp_path / name
    setting.parent.mkdir()
    setting.write_text(f"{text}\n")
    (weakness,) = of_user_namespaces(tmp_path)
    assert weakness.code == "NO_USER_NAMESPACES"
    assert mends in weakness.text
    setting.write_text("10\n" if text == "0" else "0\n")
    assert list(of_user_namespaces(tmp_path)) == []


def test_a_collector_of_crashes_is_named(tmp_path: Path) -> None:
    (tmp_path / "core_pattern").write_text("|/usr/share/apport/apport -p%p\n")
    (weakness,) = of_crashes(tmp_path)
    assert "goes to /usr/share/apport/apport, which" in weakness.text
    (tmp_path / "core_pattern").write_text("core\n")
    assert list(of_crashes(tmp_path)) == list(of_crashes(tmp_path / "none")) == []


def test_every_code_is_listed_where_people_look_it_up() -> None:
    sources = [(ROOT / name).read_text() for name in ("runtime/weaknesses.py", "client/doctor.py")]
    raised = {code for source in sources for code in re.findall(r'"([A-Z]+(?:_[A-Z0-9]+)+)"', source)}
    raised -= {"TEMPORAL_CONFIG_FILE", "TEMPORAL_CLIENT_CONFIG_FILE", "OPENAI_API_KEY", "TEMPORAL_API_KEY"}
    assert raised == error_codes.WEAKNESSES.keys()
    assert Weakness._fields == ("code", "text")
