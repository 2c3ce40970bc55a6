"""The topology of docker-compose.yml without Docker: PostgreSQL, the real Temporal server, the same set-up scripts.

PostgreSQL and the server are processes of this test, on free ports and in a temporary directory, and end with it. The
server and its SQL tool are built from their Go modules once and kept in the cache directory.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import random
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from plansurvive.runtime import daemon
from plansurvive.runtime.connect import connect
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.server import HOST, free_ports
from plansurvive.runtime.settings import Settings
from tests.kit.go_programs import NEWEST_SERVER, SERVER_VERSION, run, temporal_programs
from tests.kit.go_programs import schema as schema_of_server
from tests.nightly import only_nightly

ROOT = Path(__file__).parent.parent.parent
PORTS = ("FRONTEND", "MATCHING", "HISTORY", "WORKER")
MEMBERSHIP = ("FRONTEND", "MATCHING", "HISTORY", "WORKER")


@pytest.fixture(scope="session", params=[SERVER_VERSION, only_nightly(NEWEST_SERVER)])
def server_version(request: pytest.FixtureRequest) -> str:
    """The version of the server; each has a PostgreSQL of its own."""
    return str(request.param)


@pytest.fixture(scope="session")
def programs(server_version: str) -> Path:
    """A directory with temporal-server and temporal-sql-tool."""
    return temporal_programs(server_version)


@pytest.fixture(scope="session")
def schema(server_version: str) -> Path:
    """The table definitions that belong to that server."""
    return schema_of_server(server_version)


@pytest_asyncio.fixture(scope="session")
async def postgresql(server_version: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[int]:
    """The port of an empty PostgreSQL."""
    folder = tmp_path_factory.mktemp("postgresql")
    owner = _owner(folder)
    (port,) = free_ports(0)
    password = folder / "password"
    password.write_text("temporal")
    shutil.chown(password, owner)
    run(
        _postgres("initdb"),
        "-D",
        str(folder / "data"),
        "-U",
        "temporal",
        "-A",
        "scram-sha-256",
        "--pwfile",
        str(password),
        "-E",
        "UTF8",
        "--no-sync",
        user=owner,
    )
    command = [_postgres("postgres"), "-D", str(folder / "data"), "-h", HOST, "-p", str(port), "-k", str(folder)]
    with (folder / "postgres.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, user=owner, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        await until_ready([_postgres("pg_isready"), "-h", HOST, "-p", str(port)])
        yield port
    finally:
        told = (folder / "postgres.log").read_text(errors="replace")[-2_000:]
        assert process.returncode is None, f"PostgreSQL has ended by itself: {told}"
        process.terminate()  # PostgreSQL waits for its clients, and they are gone by now
        await process.wait()


@pytest_asyncio.fixture(scope="session")
async def stack(
    postgresql: int, programs: Path, schema: Path, temporal_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """The address of a Temporal server on that PostgreSQL, set up by the scripts of docker-compose.yml."""
    database = {
        "POSTGRES_HOST": HOST,
        "POSTGRES_PORT": str(postgresql),
        "POSTGRES_USER": "temporal",
        "POSTGRES_PASSWORD": "temporal",
        "SCHEMA": str(schema),
        "PATH": f"{programs}:{temporal_binary.parent}:{os.environ['PATH']}",
    }
    for _ in range(2):  # what is set up already stays as it is
        run("/bin/sh", str(ROOT / "docker/set-up-schema.sh"), **database)
    names = [f"{name}_PORT" for name in PORTS] + [f"{name}_MEMBERSHIP_PORT" for name in MEMBERSHIP]
    ports = dict(zip(names, map(str, low_ports(len(names))), strict=True))
    address = f"{HOST}:{ports['FRONTEND_PORT']}"
    log = tmp_path_factory.mktemp("temporal") / "server.log"
    environ = os.environ | database | ports | {"DYNAMIC_CONFIG": str(ROOT / "docker/dynamicconfig.yaml")}
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *("temporal-server", "--root", str(ROOT), "--config", "docker", "--env", "temporal"),
            *("--allow-no-auth", "start"),
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        await set_up_namespace(address, database, process, log)
        yield address
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@pytest_asyncio.fixture(scope="session")
async def stack_client(stack: str, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A client of that server."""
    return await connect(Settings.read({"HOME": str(tmp_path_factory.mktemp("home")), "TEMPORAL_ADDRESS": stack}))


async def set_up_namespace(
    address: str, environ: dict[str, str], server: asyncio.subprocess.Process, log: Path
) -> None:
    """Run the script of docker-compose.yml twice, and wait until a client gets an answer."""
    names = {"TEMPORAL_ADDRESS": address, "TEMPORAL_NAMESPACE": "default"}
    async with asyncio.timeout(180):
        for _ in range(2):
            script = await asyncio.create_subprocess_exec(
                "/bin/sh", str(ROOT / "docker/set-up-namespace.sh"), env=os.environ | environ | names
            )
            while script.returncode is None:
                assert server.returncode is None, daemon.tail(log)
                await asyncio.wait([asyncio.ensure_future(script.wait())], timeout=1)
            assert script.returncode == 0
        while True:
            try:
                await connect(Settings.read({"HOME": os.environ["HOME"], "TEMPORAL_ADDRESS": address}))
                return
            except NotConnected:
                await asyncio.sleep(0.2)


def low_ports(count: int) -> list[int]:
    """Free ports below 32768: the server keeps those of its parts in a signed 16-bit column."""
    with ExitStack() as opened:
        ports: list[int] = []
        for port in random.sample(range(10_000, 32_000), 1_000):
            with suppress(OSError):
                opened.enter_context(socket.create_server((HOST, port)))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise AssertionError("no free ports")


async def until_ready(command: list[str]) -> None:
    """Repeat a command until it succeeds."""
    async with asyncio.timeout(60):
        while True:
            process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
            if await process.wait() == 0:
                return
            await asyncio.sleep(0.1)


def _postgres(program: str) -> str:
    """A PostgreSQL program: Debian keeps those of the server out of PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), key=lambda path: int(path.parts[4]))
    found = shutil.which(program) or (str(installed[-1]) if installed else None)
    assert found, f"PostgreSQL is not installed ({program}): apt-get install postgresql, or brew install postgresql"
    return found


def _owner(folder: Path) -> str:
    """Who runs PostgreSQL: it refuses to be root, so then it is the user its package made."""
    owner = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    if os.geteuid() == 0:
        shutil.chown(folder, owner)
        for parent in folder.parents:
            if parent.stat().st_uid == 0 and parent.stat().st_mode & 0o001 == 0:
                parent.chmod(parent.stat().st_mode | 0o011)
    return owner
