"""Locates or installs the `temporal` program: PATH, the cache directory, a release of its makers, or a Go build.

Nothing is run that somebody else could have put there, and nothing is installed whose checksum is not known here. What
was installed is recorded with its own checksum and compared before each use. Nothing is downloaded if the program
exists.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import platform
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from plansurvive.runtime.atomic_file import write_whole
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.private_files import make_private, untrusted
from plansurvive.runtime.settings import Settings

VERSION = "1.5.1"
MODULE = "github.com/temporalio/cli"
MODULE_SUM = "h1:0RZMk14BWxz44Xg6ciDQvpfAMffoG3J7/K03ql80teY="
"""The module's hash in Go's checksum database. Its go.sum, a part of it, has those of all it is built from."""

RELEASE = f"https://{MODULE}/releases/download/v{{version}}/temporal_cli_{{version}}_{{system}}_{{machine}}.tar.gz"
RELEASE_SUMS = {
    "linux_amd64": "ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d",
    "linux_arm64": "bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5",
    "darwin_amd64": "bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9",
    "darwin_arm64": "cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415",
}
"""SHA-256 of the archives of that version, as package collections publish them.

cashapp/hermit-packages and zph/hermit-packages agree; for arm64 on Linux there is the first alone."""
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
MOST_BYTES = 1_000_000_000
DOWNLOAD_SECONDS = 60.0
INSTRUCTIONS = (
    "Put `temporal` (https://docs.temporal.io/cli) on PATH, or install Go so that it can be built, "
    "or set TEMPORAL_ADDRESS to a server that runs already."
)
_SUM = "temporal.sha256"


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
    folder = settings.cache_dir / "bin"
    for problem in weaknesses(settings):
        say(f"A `temporal` program is {problem}.")
    found = installed(settings)
    if found is None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        make_private(folder, "PLANS_CACHE_DIR")
        say("Getting the Temporal server (once).")
        await _install(folder, say)
        found = folder / "temporal"
    if found.parent == folder:
        await asyncio.to_thread(_verify, found)
    return found


def _candidates(settings: Settings) -> Iterator[Path]:
    """Programs named `temporal`, in the order in which they are preferred."""
    for place in [*os.environ.get("PATH", os.defpath).split(os.pathsep), str(settings.cache_dir / "bin")]:
        found = shutil.which("temporal", path=place) if place else None
        if found:
            yield Path(found).absolute()


async def _install(folder: Path, say: Callable[[str], None]) -> None:
    tried = []
    for way in (_download, _build):
        failure = await way(folder, say)
        if failure is None:
            program = folder / "temporal"
            program.chmod(0o700)
            _record(program, await asyncio.to_thread(_digest, program))
            return
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


async def _download(folder: Path, say: Callable[[str], None]) -> str | None:
    del say
    return await download(folder, RELEASE, RELEASE_SUMS)


async def download(folder: Path, release: str, sums: Mapping[str, str]) -> str | None:
    """Download the makers' archive for this machine and unpack the program. Returns the failure, or None.

    Nothing of an archive with another checksum than that in `sums` is unpacked. `release`: its URL, with the fields
    version, system, machine.
    """
    import httpx  # needed once per machine

    system, machine = sys.platform, MACHINES.get(platform.machine().lower(), platform.machine())
    expected = sums.get(f"{system}_{machine}")
    if expected is None:
        return f"There is no release with a known checksum for {system} {machine}."
    url = release.format(version=VERSION, system=system, machine=machine)
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


async def _build(folder: Path, say: Callable[[str], None]) -> str | None:
    return await build(folder, say, MODULE_SUM)


async def build(folder: Path, say: Callable[[str], None], expected: str) -> str | None:
    """Build the program from its Go module, if that has the expected hash. Returns the failure, or None.

    It is built in the module's own directory, where Go compares everything else with the module's go.sum.
    """
    go = shutil.which("go")
    if go is None:
        return "Go is not installed."
    say(f"Building it from {MODULE}@v{VERSION} (some minutes, once).")
    # What turns Go's own checks off is not taken from the user's environment.
    off = dict.fromkeys(("GOFLAGS", "GOINSECURE", "GONOSUMDB", "GONOSUMCHECK", "GOPRIVATE"), "")
    environ = os.environ | off | {"CGO_ENABLED": "0", "GOWORK": "off"}
    code, output = await _run([go, "mod", "download", "-json", f"{MODULE}@v{VERSION}"], environ, folder)
    try:
        module = json.loads(output)
        found, source = module["Sum"], module["Dir"]
    except (ValueError, KeyError, TypeError):
        return f"`go mod download` failed: {output.strip()[-1_000:]}."
    if code != 0 or found != expected:
        return f"The Go module {MODULE}@v{VERSION} has the hash {found}, not {expected}; it is not built."
    stamp = f"-X {MODULE}/temporalcli.Version={VERSION}"
    command = [go, "build", "-mod=readonly", "-buildvcs=false", "-ldflags", stamp]
    code, output = await _run([*command, "-o", str(folder / "temporal"), "./cmd/temporal"], environ, Path(source))
    return None if code == 0 else f"`go build` failed: {output.strip()[-1_000:]}."


async def _run(command: list[str], environ: Mapping[str, str], directory: Path) -> tuple[int, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, env=environ, cwd=directory, stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode(errors="replace")
