"""The servers that libraries need: PostgreSQL, Prefect's, Restate's. Each listens on loopback and keeps its port."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.comparison import installing
from benchmarks.comparison.contender import kill_trees
from plansurvive.runtime import daemon
from plansurvive.runtime.server import HOST, free_ports

PATIENCE = 120.0


class Server:
    """A process to start, kill and start again; without a command there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pids(self) -> list[int]:
        """The process, if it is running."""
        return [self._process.pid] if self._process is not None else []

    async def prepare(self) -> None:
        """What is done once, before the first start."""

    async def start(self) -> None:
        """Start it and wait until it answers. Raises RuntimeError or TimeoutError."""
        command, variables, ports = self._command()
        if not command:
            return
        with (self.folder / "server.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.folder), **variables},
                start_new_session=True,
                user=self._user(),
            )
        async with asyncio.timeout(PATIENCE):
            while not all(map(_answers, ports)) or not await self._ready():
                if self._process.returncode is not None:
                    raise RuntimeError(f"{command[0]} exited: {daemon.tail(self.folder / 'server.log')[-500:]}")
                await asyncio.sleep(0.1)

    async def kill(self) -> None:
        """SIGKILL, to its children too."""
        kill_trees(self.pids)
        if self._process is not None:
            await self._process.wait()
        self._process = None

    def _command(self) -> tuple[list[str], Mapping[str, str], list[int]]:
        """The command, its variables, and the ports it opens."""
        return [], {}, []

    def _user(self) -> str | None:
        return None

    async def _ready(self) -> bool:
        return True


class PostgreSql(Server):
    """PostgreSQL as it is after `initdb`: fsync and synchronous_commit are on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (self.port,) = free_ports(0)

    @property
    def url(self) -> str:
        """Of a database that DBOS creates."""
        return f"postgresql://bench@{HOST}:{self.port}/bench"

    async def prepare(self) -> None:
        """Make an empty database."""
        if user := self._user():
            for folder in (self.folder, *self.folder.parents):
                if folder.stat().st_uid == os.geteuid() and folder.stat().st_mode & 0o001 == 0:
                    folder.chmod(folder.stat().st_mode | 0o011)
            self.folder.chmod(0o755)
            (self.folder / "data").mkdir(mode=0o700)
            shutil.chown(self.folder / "data", user)
        command = [_postgres("initdb"), "-D", str(self.folder / "data"), "-U", "bench", "-A", "trust", "-E", "UTF8"]
        process = await asyncio.create_subprocess_exec(
            *command, "--no-sync", user=self._user(), cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        said, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"initdb failed: {said.decode(errors='replace')[-500:]}")

    def _command(self) -> tuple[list[str], Mapping[str, str], list[int]]:
        data = self.folder / "data"
        return (
            [_postgres("postgres"), "-D", str(data), "-h", HOST, "-p", str(self.port), "-k", str(data)],
            {},
            [self.port],
        )

    def _user(self) -> str | None:
        """PostgreSQL refuses to be root: then it is the user that its package made."""
        return "postgres" if os.geteuid() == 0 and pwd.getpwnam("postgres") else None

    async def _ready(self) -> bool:
        command = [_postgres("pg_isready"), "-h", HOST, "-p", str(self.port)]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
        return await process.wait() == 0


class PrefectServer(Server):
    """`prefect server start`, with its data in SQLite."""

    def __init__(self, folder: Path, python: Path) -> None:
        super().__init__(folder)
        self.python = python
        (self.port,) = free_ports(0)

    @property
    def variables(self) -> dict[str, str]:
        """Settings that the server and its clients share."""
        return {
            "PREFECT_HOME": str(self.folder),
            "PREFECT_API_URL": f"http://{HOST}:{self.port}/api",
            "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_LOGGING_LEVEL": "CRITICAL",
            "DO_NOT_TRACK": "1",
        }

    def _command(self) -> tuple[list[str], Mapping[str, str], list[int]]:
        program = [str(self.python.parent / "prefect"), "server", "start", "--no-ui"]
        return [*program, "--host", HOST, "--port", str(self.port)], self.variables, [self.port]


class RestateServer(Server):
    """One node of Restate with its defaults: its log is written with fsync."""

    def __init__(self, folder: Path, program: Path) -> None:
        super().__init__(folder)
        self.program = program
        self.node, self.ingress, self.admin = free_ports(0, 0, 0)

    def _command(self) -> tuple[list[str], Mapping[str, str], list[int]]:
        variables = {
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_BIND_ADDRESS": f"{HOST}:{self.node}",
            "RESTATE_ADVERTISED_ADDRESS": f"http://{HOST}:{self.node}/",
            "RESTATE_INGRESS__BIND_ADDRESS": f"{HOST}:{self.ingress}",
            "RESTATE_ADMIN__BIND_ADDRESS": f"{HOST}:{self.admin}",
            "RESTATE_DISABLE_TELEMETRY": "true",
            "DO_NOT_TRACK": "1",
            "RESTATE_LOG_FILTER": "error",
        }
        command = [str(self.program), "--base-dir", str(self.folder / "data"), "--node-name", "bench", "--no-logo"]
        return command, variables, [self.node, self.ingress, self.admin]


async def restate_in(folder: Path) -> RestateServer:
    """Restate's server, fetched if needed."""
    return RestateServer(folder, await installing.restate_server())


def _postgres(program: str) -> str:
    """A PostgreSQL program: Debian keeps those of the server out of PATH. Raises RuntimeError if there is none."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), key=lambda path: int(path.parts[4]))
    found = shutil.which(program) or (str(installed[-1]) if installed else None)
    if found is None:
        raise RuntimeError(f"PostgreSQL is not installed ({program})")
    return found


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1.0):
            return True
    except OSError:
        return False
