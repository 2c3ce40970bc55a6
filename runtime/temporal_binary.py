"""Locates or installs the `temporal` program: PATH, the cache directory, the SDK's download, or a Go build.

Nothing is downloaded if the program exists; a download or build is cached.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from runtime.errors import NotConnected
from runtime.settings import Settings

MODULE = "github.com/temporalio/cli/cmd/temporal@v1.5.1"
DOWNLOAD_SECONDS = 60.0
INSTRUCTIONS = (
    "Put `temporal` (https://docs.temporal.io/cli) on PATH, or install Go so that it can be built, "
    "or set TEMPORAL_ADDRESS to a server that runs already."
)


def installed(settings: Settings) -> Path | None:
    """The program on PATH or in the cache; downloads nothing."""
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), str(settings.cache_dir / "bin")])
    found = shutil.which("temporal", path=places)
    return Path(found) if found else None


async def find_temporal(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Path:
    """Locate the program, or install it. Raises NotConnected NO_TEMPORAL. `say` announces slow work."""
    found = installed(settings)
    if found:
        return found
    folder = settings.cache_dir / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    say("Getting the Temporal server (once).")
    tried = []
    for way in (_download, _build):
        failure = await way(folder, say)
        if failure is None:
            return folder / "temporal"
        tried.append(failure)
    raise NotConnected(f"There is no `temporal` program. {' '.join(tried)} {INSTRUCTIONS}", "NO_TEMPORAL")


async def _download(folder: Path, say: Callable[[str], None]) -> str | None:
    """Let the SDK download its server, which it only does by starting one. Returns the failure, or None."""
    from temporalio.testing import WorkflowEnvironment  # slow to import, and needed once per machine

    del say
    try:
        async with asyncio.timeout(DOWNLOAD_SECONDS):
            environment = await WorkflowEnvironment.start_local(
                download_dest_dir=str(folder), dev_server_log_level="error"
            )
            await environment.shutdown()
    except (RuntimeError, TimeoutError) as error:
        return f"The SDK's download failed ({str(error).splitlines()[0] if str(error) else 'time limit'})."
    fetched = max(folder.glob("temporal-sdk-python-*"), key=lambda path: path.stat().st_mtime, default=None)
    if fetched is None:
        return "The SDK's download left no program behind."
    fetched.replace(folder / "temporal")
    return None


async def _build(folder: Path, say: Callable[[str], None]) -> str | None:
    """Build the program from its Go module. Returns the failure, or None."""
    go = shutil.which("go")
    if go is None:
        return "Go is not installed."
    say(f"Building it: go install {MODULE} (some minutes, once).")
    environ = os.environ | {"GOBIN": str(folder), "CGO_ENABLED": "0"}
    process = await asyncio.create_subprocess_exec(
        go, "install", MODULE, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    if process.returncode == 0:
        return None
    return f"`go install {MODULE}` failed: {output.decode(errors='replace').strip()[-1_000:]}."
