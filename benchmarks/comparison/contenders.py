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
from benchmarks.comparison.waits import SETTLE
from plansurvive.runtime.server import HOST, free_ports

PACKAGES = {
    "langgraph": ["langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2", "aiosqlite==0.22.1"],
    "dbos": ["dbos==3.4.0"],
    # Later versions of FastAPI no longer take an argument that this Prefect gives them.
    "prefect": ["prefect==3.8.8", "fastapi<0.150"],
    "restate": ["restate_sdk==1.3.0", "hypercorn==0.18.0", "httpx==0.28.1"],
}


BY_ITSELF, WHEN_ASKED = "by itself", "when asked to"
"""How a run continues."""


@dataclass(frozen=True)
class Wait:
    """How a run waits for a person."""

    by: str
    """What its documentation recommends for that."""
    goes_on: str = BY_ITSELF
    """What becomes of a run whose answer comes after a kill."""
    settle: float = SETTLE
    """Seconds after which it holds no more memory than it has to."""


@dataclass(frozen=True)
class Entry:
    """One row: what it is called until it has started, and how it is made in a folder."""

    name: str
    make: Callable[[Path], Awaitable[Contender]]
    waits: Wait | None
    """None: as in another row."""
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


APPROVAL = Wait("an approval")
RECEIVE = Wait("`DBOS.recv`")
INTERRUPT = Wait("`interrupt`; the call with the answer runs the rest", WHEN_ASKED)

ENTRIES = [
    Entry("a plan", _plan, APPROVAL),
    Entry("a plan, `express`", _express, APPROVAL),
    Entry("a plan, steps `repeatable: false`", _once, None, speed=False),
    Entry("a workflow by hand, bare", _bare, Wait("a signal"), kills=False),
    # Its server lets a run that waits go after a minute.
    Entry("restate", _restate, Wait("a promise of the workflow", settle=75.0)),
    Entry("dbos, PostgreSQL", _dbos_postgresql, RECEIVE),
    Entry("dbos, SQLite", _dbos_sqlite, RECEIVE),
    Entry("langgraph, sync", _langgraph("sync"), INTERRUPT),
    Entry("langgraph, async", _langgraph("async"), INTERRUPT),
    Entry("langgraph, exit", _langgraph("exit"), INTERRUPT),
    Entry("prefect", _prefect, Wait("`suspend_flow_run`; its runner starts a process to go on")),
]
