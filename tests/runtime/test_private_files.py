"""The state directory is private after every start, or it is refused; so is a program that others could replace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plansurvive.runtime import daemon, server
from plansurvive.runtime.private_files import make_private, replaceable, trouble, untrusted
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.weaknesses import weaknesses
from tests.kit.waiting import until

NOBODY, OTHER = 65_534, 12_345
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory that other users may read, as it may exist before the first start."""
    path = tmp_path / "place"
    path.mkdir(mode=0o755)
    path.chmod(0o755)
    return path


def test_the_rights_of_others_are_taken_off(place: Path) -> None:
    make_private(place, "PLANS_STATE_DIR")
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_state_directory_open_to_all_is_closed_when_the_server_starts(
    place: Path, caches: dict[str, str], temporal_binary: Path
) -> None:
    settings = Settings.read({**caches, "PLANS_STATE_DIR": str(place), "PLANS_SERVER": "embedded"})
    assert any(f"chmod 700 {place}" in each.text for each in weaknesses(settings))
    umask = os.umask(0o022)
    try:
        await server.ensure(settings)
        await until((place / "temporal.db-wal").exists, "the server writes its data")
    finally:
        os.umask(umask)
        await server.stop(settings)
    assert place.stat().st_mode & 0o777 == 0o700
    assert [path for path in place.rglob("*") if path.stat().st_mode & 0o077] == []
    assert not any("chmod" in each.text for each in weaknesses(settings))


@only_root
def test_a_directory_of_another_user_is_refused(place: Path) -> None:
    os.chown(place, OTHER, OTHER)
    with pytest.raises(SettingError, match=rf"belongs to user {OTHER}, not to .*choose another") as caught:
        make_private(place, "PLANS_STATE_DIR")
    assert caught.value.code == "BAD_SETTING:PLANS_STATE_DIR"
    assert place.stat().st_mode & 0o777 == 0o755


@only_root
def test_a_link_into_the_place_of_another_user_is_refused(place: Path, tmp_path: Path) -> None:
    os.chown(place, OTHER, OTHER)
    link = tmp_path / "link"
    link.symlink_to(place)
    assert "which leads to" in str(trouble(link))


@only_root
def test_a_directory_that_another_user_could_replace_is_refused(place: Path) -> None:
    inner = place / "inner"
    inner.mkdir()
    assert trouble(inner) is None
    os.chown(place, OTHER, OTHER)
    assert f"{place}, above {inner}, belongs to user {OTHER}" in str(trouble(inner))


def test_a_directory_that_everybody_could_replace_is_refused_unless_it_is_sticky(place: Path) -> None:
    inner = place / "inner"
    inner.mkdir()
    place.chmod(0o1777)
    assert replaceable(inner) is None
    place.chmod(0o777)
    assert f"chmod o-w {place}" in str(replaceable(inner))


def test_a_link_whose_end_everybody_could_replace_is_refused(place: Path, tmp_path: Path) -> None:
    (place / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(place / "real")
    assert replaceable(link) is None
    place.chmod(0o777)
    assert f"chmod o-w {place}" in str(replaceable(link))


def test_a_program_that_everybody_may_change_is_not_run(place: Path) -> None:
    program = place / "temporal"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert untrusted(program) is None
    program.chmod(0o757)
    assert f"chmod o-w {program}" in str(untrusted(program))


def test_a_log_is_readable_by_this_user_only(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        pid, _ = daemon.start(["sh", "-c", "umask > made"], tmp_path / "x.log", {"PATH": os.defpath}, umask=0o077)
        os.waitpid(pid, 0)
    finally:
        os.umask(umask)
    assert (tmp_path / "x.log").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "made").read_text() == "0077\n"
