"""The Docker engine of these tests: the one that runs, or one of their own, whose data stays in the cache directory.

`python -m tests.compose.engine` says what is missing; exit code 1 if something is.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kit.go_programs import built, cached
from tests.kit.waiting import PATIENCE

COMPOSE = ("github.com/docker/compose/v2/cmd", "v2.29.7")
"""What is built where Docker lacks `docker compose`."""
ENGINE = "Docker Engine (on Debian and Ubuntu: apt-get install docker.io), running, for a user who may use it"


@dataclass(frozen=True)
class Engine:
    """A Docker engine, and the variables with which `docker` and `docker compose` use it."""

    environ: dict[str, str]
    root: Path
    """Where it keeps its data."""

    def run(self, *arguments: str, **more: str) -> str:
        """What `docker` prints. Raises AssertionError with all it said when it fails."""
        return output(["docker", *arguments], self.environ | more)

    def attempt(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[bytes]:
        """The end of a `docker` command, however it ended."""
        command = ["docker", *arguments]
        return subprocess.run(
            command, env=self.environ | more, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )

    def has(self, image: str) -> bool:
        """Whether the engine has an image already."""
        return self.attempt("image", "inspect", image).returncode == 0


def missing() -> list[str]:
    """What has to be installed before these tests can run."""
    problems = [] if shutil.which("docker") and (_runs(_environ()) or _can_start()) else [ENGINE]
    if not _has_compose(_environ()) and not shutil.which("go"):
        problems.append("the Compose plugin of Docker (docker-compose-v2 on Ubuntu), or Go to build it")
    return problems


@contextmanager
def engine() -> Iterator[Engine]:
    """The engine that runs, or one that runs meanwhile."""
    environ = _environ()
    if not _has_compose(environ):
        plugins = cached(f"compose-{COMPOSE[1]}") / "cli-plugins"
        built(*COMPOSE, plugins, "docker-compose")
        environ["DOCKER_CONFIG"] = str(plugins.parent)
    if _runs(environ):
        yield Engine(environ, Path(output(["docker", "info", "--format", "{{.DockerRootDir}}"], environ).strip()))
        return
    with tempfile.TemporaryDirectory(prefix="docker-") as folder, _started(Path(folder)) as (host, root):
        yield Engine(environ | {"DOCKER_HOST": host}, root)


@contextmanager
def _started(folder: Path) -> Iterator[tuple[str, Path]]:
    """An engine of our own: its address and where its data is."""
    root, host = cached("docker"), f"unix://{folder}/docker.sock"
    root.mkdir(parents=True, exist_ok=True)
    command = ["dockerd", "--data-root", str(root), "--exec-root", f"{folder}/run", "--pidfile", f"{folder}/docker.pid"]
    log = folder / "dockerd.log"
    with log.open("wb") as out:
        process = subprocess.Popen([*command, "--host", host], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        deadline = PATIENCE
        while not _runs(_environ() | {"DOCKER_HOST": host}):
            assert process.poll() is None, log.read_text(errors="replace")[-2000:]
            assert deadline > 0, "dockerd does not answer"
            deadline -= 1
            with suppress(subprocess.TimeoutExpired):
                process.wait(1)
        yield host, root
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def output(command: list[str], environ: dict[str, str]) -> str:
    """What a command prints; a failure shows all it said."""
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _environ() -> dict[str, str]:
    """Nothing but what Docker and Go need: the variables of docker-compose.yml come from the tests alone."""
    kept = ("HOME", "PATH", "DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"DOCKER_BUILDKIT": "1"}


def _runs(environ: dict[str, str]) -> bool:
    return subprocess.run(["docker", "version"], env=environ, capture_output=True, check=False).returncode == 0


def _has_compose(environ: dict[str, str]) -> bool:
    if not shutil.which("docker"):
        return False
    done = subprocess.run(["docker", "compose", "version"], env=environ, capture_output=True, check=False)
    return done.returncode == 0 and b"v1." not in done.stdout


def _can_start() -> bool:
    return os.geteuid() == 0 and shutil.which("dockerd") is not None


if __name__ == "__main__":
    wanted = missing()
    if wanted:
        print("make test-compose needs: " + "; ".join(wanted) + ".", file=sys.stderr)
    sys.exit(bool(wanted))
