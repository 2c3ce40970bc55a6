"""Every engine and setting that is compared, in the order of the table, with what its documentation says of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison import installing
from benchmarks.comparison.contender import Contender
from benchmarks.comparison.ours import Plans
from benchmarks.comparison.scripts import Script
from benchmarks.comparison.servers import PostgreSql, PrefectServer, Server, restate_in
from plansurvive.runtime.server import HOST, free_ports

PACKAGES = {
    "langgraph": ["langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2", "aiosqlite==0.22.1"],
    "dbos": ["dbos==3.4.0"],
    # Later versions of FastAPI no longer take an argument that this Prefect gives them.
    "prefect": ["prefect==3.8.8", "fastapi<0.150"],
    "restate": ["restate_sdk==1.3.0", "hypercorn==0.18.0", "httpx==0.28.1"],
}


@dataclass(frozen=True)
class Entry:
    """One row: what it is called until it has started, and how it is made in a folder."""

    name: str
    make: Callable[[Path], Awaitable[Contender]]
    speed: bool = True
    kills: bool = True


async def _plan(folder: Path) -> Contender:
    return Plans(folder)


async def _express(folder: Path) -> Contender:
    return Plans(folder, express=True)


async def _once(folder: Path) -> Contender:
    return Plans(folder, repeatable=False)


async def _bare(folder: Path) -> Contender:
    return Plans(folder, "bare")


def _langgraph(durability: str) -> Callable[[Path], Awaitable[Contender]]:
    async def make(folder: Path) -> Contender:
        python = await installing.python_with("langgraph", PACKAGES["langgraph"])
        state = f"SQLite checkpoints, durability={durability}"
        return Script("langgraph", state, python, folder, Server(folder), lambda _: ([durability], {}))

    return make


async def _dbos_sqlite(folder: Path) -> Contender:
    python = await installing.python_with("dbos", PACKAGES["dbos"])
    return Script("dbos", "SQLite", python, folder, Server(folder), lambda work: ([f"sqlite:///{work}/dbos.db"], {}))


async def _dbos_postgresql(folder: Path) -> Contender:
    python = await installing.python_with("dbos", PACKAGES["dbos"])
    server = PostgreSql(folder)
    return Script("dbos", "PostgreSQL", python, folder, server, lambda _: ([server.url], {}))


async def _prefect(folder: Path) -> Contender:
    python = await installing.python_with("prefect", PACKAGES["prefect"])
    server = PrefectServer(folder, python)
    state = "its server, SQLite, results kept"
    return Script("prefect", state, python, folder, server, lambda _: ([], server.variables))


async def _restate(folder: Path) -> Contender:
    python = await installing.python_with("restate", PACKAGES["restate"])
    server = await restate_in(folder)
    (port,) = await asyncio.to_thread(free_ports, 0)
    arguments = [str(port), f"http://{HOST}:{server.ingress}", f"http://{HOST}:{server.admin}"]
    state = f"its server {installing.RESTATE_SERVER}, log with fsync"
    return Script("restate", state, python, folder, server, lambda _: (arguments, {}))


ENTRIES = [
    Entry("a plan", _plan),
    Entry("a plan, `express`", _express),
    Entry("a plan, steps `repeatable: false`", _once, speed=False),
    Entry("a workflow by hand, bare", _bare, kills=False),
    Entry("restate", _restate),
    Entry("dbos, PostgreSQL", _dbos_postgresql),
    Entry("dbos, SQLite", _dbos_sqlite),
    Entry("langgraph, sync", _langgraph("sync")),
    Entry("langgraph, async", _langgraph("async")),
    Entry("langgraph, exit", _langgraph("exit")),
    Entry("prefect", _prefect),
]
