"""Programs of Go modules for tests, built once and kept in the cache directory."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from plansurvive.runtime.settings import Settings

SERVER = "go.temporal.io/server"
SERVER_VERSION = "v1.29.1"
"""The version that docker-compose.yml runs."""
NEWEST_SERVER = "v1.32.1"
"""The newest that builds with the Go of most machines: v1.32.2 and the last v1.31 and v1.30 want 1.26.10."""


def cached(name: str) -> Path:
    """A directory of ours in the cache directory; it may not exist yet."""
    return (
        Settings.read({key: os.environ[key] for key in ("HOME", "PLANS_CACHE_DIR") if key in os.environ}).cache_dir
        / name
    )


def built(package: str, version: str, folder: Path, name: str) -> Path:
    """A program under this name in a folder, from the package of a Go module; AssertionError with what Go says."""
    program = folder / name
    if not program.exists():
        run("go", "install", f"{package}@{version}", GOBIN=str(folder), CGO_ENABLED="0")
        (folder / package.rpartition("/")[2]).rename(program)
    return program


def source(module: str, version: str) -> Path:
    """The directory with the files of a Go module."""
    return Path(json.loads(run("go", "mod", "download", "-json", f"{module}@{version}"))["Dir"])


def temporal_programs(version: str = SERVER_VERSION) -> Path:
    """A directory with temporal-server and temporal-sql-tool."""
    folder = cached(f"server-{version}")
    for package, name in (("cmd/server", "temporal-server"), ("cmd/tools/sql", "temporal-sql-tool")):
        built(f"{SERVER}/{package}", version, folder, name)
    return folder


def schema(version: str = SERVER_VERSION) -> Path:
    """The table definitions for PostgreSQL that belong to that server."""
    return source(SERVER, version) / "schema/postgresql/v12"


def run(*command: str, user: str | None = None, **environ: str) -> str:
    """The output of a command; a failure shows all it said."""
    done = subprocess.run(command, user=user, env=os.environ | environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout
