"""A bucket on a server of this machine that speaks Google Cloud Storage's protocol (fake-gcs-server).

The program is built from its Go module once and kept in the cache directory, as the real Temporal server of
`make test-stack` is.
"""

from __future__ import annotations

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from plansurvive.runtime.base.wait import locked
from plansurvive.runtime.server import free_ports, listens
from plansurvive.runtime.settings import Settings

MODULE, VERSION = "github.com/fsouza/fake-gcs-server", "v1.56.1"


@pytest.fixture(scope="session")
def gcs_program(caches: dict[str, str]) -> Path:
    """The program, built if it has not been."""
    folder = Settings.read(caches).cache_dir / f"fake-gcs-server-{VERSION}"
    program = folder / "fake-gcs-server"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", 1_200):  # several processes of tests may want it
        if not program.exists():
            environ = {**os.environ, "GOBIN": str(folder), "CGO_ENABLED": "0", "GOFLAGS": ""}
            subprocess.run(["go", "install", f"{MODULE}@{VERSION}"], env=environ, check=True, capture_output=True)
    return program


@pytest.fixture
def gcs_bucket(gcs_program: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket on a server of this machine."""
    (port,) = free_ports(0)
    url = f"http://127.0.0.1:{port}"
    command = [str(gcs_program), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    command += ["-external-url", url, "-public-host", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not listens("127.0.0.1", port) and time.monotonic() < deadline:
            time.sleep(0.02)
        made = urllib.request.Request(
            f"{url}/storage/v1/b", b'{"name": "plans"}', {"Content-Type": "application/json"}, method="POST"
        )
        urllib.request.urlopen(made).close()
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
        yield "plans"
    finally:
        server.kill()
        server.wait()
