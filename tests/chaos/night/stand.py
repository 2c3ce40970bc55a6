"""What a round runs on, each a process of its own: server, workers, proxy, LLM, storage; and how they are killed.

Workers reach everything through the proxy. What ends by itself is started again, as a service manager would do.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from plansurvive.runtime.server import HOST, flags, free_ports, listens
from tests.chaos.conftest import Killable
from tests.chaos.night.clock import Clock
from tests.chaos.night.disk import Disk
from tests.chaos.night.new_code import ROOT
from tests.kit.waiting import until

BUCKET = "plans"
TOOLS = "tests/chaos/night/tools.py"
KEPT = ("PATH", "LANG", "HOME", "XDG_CACHE_HOME", "PLANS_CACHE_DIR")
S3 = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


@dataclass
class Part(Killable):
    """A process that is to run."""

    code: Path = ROOT
    """Directory it is started in, with the code that it runs."""
    is_wanted: bool = False

    def start(self) -> None:
        """Start it, unless it runs."""
        self.is_wanted = True
        if not self.is_running:
            with self.log.open("ab") as log:
                self.running = subprocess.Popen(
                    self.command, env=self.environ, cwd=self.code, stdout=log, stderr=log, start_new_session=True
                )
            self.starts += 1

    def kill(self) -> None:
        """kill -9, and it is gone until it is started again."""
        self.is_wanted = False
        super().kill()

    def send(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.running is not None:
            with suppress(ProcessLookupError):
                self.running.send_signal(number)

    def terminate(self) -> None:
        """SIGTERM, and kill -9 if it does not end."""
        self.is_wanted = False
        if self.running is not None:
            self.send(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.running.wait(10)
        self.kill()

    @property
    def is_running(self) -> bool:
        """Whether there is such a process."""
        return self.running is not None and self.running.poll() is None


@dataclass
class Stand:
    """Everything of one round. `folder`: logs and the record; `disk`: workspace, state, the server's data."""

    folder: Path
    disk: Disk
    temporal: Path
    clock: Clock | None = None
    settings: dict[str, str] = field(default_factory=dict)
    """Settings of the workers."""
    is_durable: bool = True
    """Whether the server keeps its data on disk."""
    has_bucket: bool = False
    ports: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By service: its own port, and that of the proxy in front of it."""
    parts: dict[str, Part] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        """Where plans work."""
        return self.disk.workspace

    @property
    def state(self) -> Path:
        """State directory of the workers."""
        return self.disk.root / "state"

    @property
    def address(self) -> str:
        """The server, past the proxy."""
        return f"{HOST}:{self.ports['server'][0]}"

    @property
    def workers(self) -> Sequence[Part]:
        """The workers."""
        return [part for name, part in self.parts.items() if name.startswith("worker")]

    def prepare(self, workers: int) -> None:
        """Make directories, choose ports, and describe every process. Starts nothing."""
        for path in (self.workspace, self.state):
            path.mkdir(parents=True, exist_ok=True)
        names = ["server", "llm", "storage"]
        found = free_ports(*[0] * (2 * len(names) + 1))
        self.ports = {name: (found[2 * number], found[2 * number + 1]) for number, name in enumerate(names)}
        database = self.disk.root / "temporal.db" if self.is_durable else None
        own = {name: os.environ[name] for name in KEPT if name in os.environ}
        self._add("server", [str(self.temporal), *flags(self.ports["server"][0], found[-1], database)], own)
        script = str(self.folder / "llm.json")
        llm = [sys.executable, "-m", "examples.scripted_llm", script, "--port", str(self.ports["llm"][0])]
        self._add("llm", llm, own)
        if self.has_bucket:
            moto = "from moto.server import main; main()"
            self._add("storage", [sys.executable, "-c", moto, "-H", HOST, "-p", str(self.ports["storage"][0])], own)
        for number in range(workers):
            self._add(f"worker{number}", [sys.executable, "worker.py"], self._worker_environ(own))

    async def up(self) -> None:
        """Start everything, and wait until it can be used; the workers come up by themselves."""
        self._proxy = self._start_proxy()
        for part in self.parts.values():
            part.start()
        for name in ("server", "llm", "storage"):
            if name in self.parts:
                port = self.ports[name][0]
                await until(lambda: listens(HOST, port), f"{name} listens")  # noqa: B023
        if self.has_bucket:
            import boto3

            url = f"http://{HOST}:{self.ports['storage'][0]}"
            names = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
            boto3.client("s3", endpoint_url=url, **names).create_bucket(Bucket=BUCKET)  # type: ignore[call-overload]

    def keep(self) -> int:
        """Start what should run and does not; returns how many."""
        ended = [part for part in self.parts.values() if part.is_wanted and not part.is_running]
        for part in ended:
            part.start()
        return len(ended)

    def network(self, service: str, mode: str) -> None:
        """What becomes of connections to a service: `pass`, `slow 200`, `cut`, `hang`."""
        assert self._proxy.stdin is not None
        self._proxy.stdin.write(f"{self.ports[service][1]} {mode}\n")

    def down(self) -> None:
        """End every process."""
        for part in reversed(self.parts.values()):
            part.send(signal.SIGCONT)
            part.kill()
        if proxy := getattr(self, "_proxy", None):
            proxy.kill()
            proxy.wait()

    def _start_proxy(self) -> subprocess.Popen[str]:
        routes = [f"{through}={port}" for port, through in self.ports.values()]
        proxy = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.night.proxy", *routes],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, start_new_session=True,
        )  # fmt: skip
        assert proxy.stdout is not None
        assert proxy.stdout.readline() == "ready\n"
        return proxy

    def _add(self, name: str, command: list[str], environ: dict[str, str]) -> None:
        self.parts[name] = Part(command, environ, self.folder / f"{name}.log")

    def _worker_environ(self, own: dict[str, str]) -> dict[str, str]:
        through = {name: f"http://{HOST}:{ports[1]}" for name, ports in self.ports.items()}
        made = {
            "TEMPORAL_ADDRESS": f"{HOST}:{self.ports['server'][1]}",
            "PLANS_STATE_DIR": str(self.state),
            "PLANS_WORKSPACE": str(self.workspace),
            "PLANS_TOOLS": TOOLS,
            "PLANS_GRACE": "2",
            "PLANS_LIMIT_FREE_MB": "1",
            "PLANS_LLM_TIMEOUT": "10",
            "PLANS_MODEL": "demo",
            "OPENAI_BASE_URL": f"{through['llm']}/v1",
        }
        stored = {**S3, "AWS_ENDPOINT_URL": through["storage"], "PLANS_STORAGE": f"s3://{BUCKET}"}
        clock = self.clock.environ if self.clock else {}
        return own | made | (stored if self.has_bucket else {}) | clock | self.settings
