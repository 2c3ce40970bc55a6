"""Drives a script of `benchmarks.others`: a process with the library and the steps, beside the server it needs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.comparison.contender import Cost, cpu_of, kill_trees
from benchmarks.comparison.servers import Server
from benchmarks.graphs import Steps
from benchmarks.stand import ROOT
from plansurvive.runtime import daemon

SCRIPTS = ROOT / "benchmarks" / "others"
PATIENCE = 900.0


class Script:
    """A library with one set of settings (`contender.Contender`)."""

    def __init__(
        self,
        library: str,
        state: str,
        python: Path,
        folder: Path,
        server: Server,
        more: Callable[[Path], tuple[list[str], dict[str, str]]],
    ) -> None:
        """`more`: further arguments and variables of the script, by its folder."""
        self.engine, self.state, self.has_server = library, state, type(server) is not Server
        self.library, self.python, self.folder, self.server = library, python, folder / "work", server
        self.more = more
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the server and the process."""
        self.folder.mkdir()
        await self.server.prepare()
        await self.server.start()
        await self._start()

    async def stop(self) -> None:
        """Stop both."""
        await self.kill(everything=True)

    @property
    def pids(self) -> list[int]:
        """The process."""
        return [self._running.pid]

    @property
    def server_pids(self) -> list[int]:
        """Those of the server."""
        return self.server.pids

    async def run(self, name: str, workload: list[Steps], *, in_turn: bool = False) -> Cost:
        """Run graphs at the same time, or one after the other."""
        pids = [*self.server_pids, *self.pids]
        before = cpu_of(pids)
        answer = await self._asked({"do": "run", "name": name, "graphs": workload, "inTurn": in_turn})
        if answer["done"] != sum(map(len, workload)):
            raise RuntimeError(f"{answer['done']} steps of {name} are done")
        return Cost(wall=answer["seconds"], cpu=cpu_of(pids) - before)

    async def begin(self, name: str, steps: Steps) -> None:
        """Start a graph."""
        await self._ask({"do": "run", "name": name, "graphs": [steps]})

    async def kill(self, *, everything: bool) -> None:
        """Kill the process, or the server with it."""
        pids = [self._process.pid] if self._process else []
        kill_trees([*pids, *self.server.pids] if everything else pids)
        if everything:
            await self.server.kill()
        if self._process:
            await self._process.wait()
        self._process = None

    async def restart(self, *, everything: bool) -> None:
        """Start again what was killed."""
        if everything:
            await self.server.start()
        await self._start()

    async def resume(self, name: str, steps: Steps) -> None:
        """Ask the script to continue a run."""
        await self._asked({"do": "resume", "name": name, "steps": steps})

    async def result(self, name: str, steps: Steps) -> int:
        """Ask the script for the result of a run."""
        return int((await self._asked({"do": "result", "name": name, "steps": steps}))["done"])

    def ledger(self, file: str) -> Path:
        """In the script's folder."""
        return self.folder / file

    async def wait(self, name: str, runs: int) -> None:
        """Ask the script to start runs that wait."""
        await self._asked({"do": "wait", "name": name, "runs": runs})

    async def answer(self, name: str, runs: int) -> None:
        """Ask the script to answer the first of them."""
        await self._asked({"do": "answer", "name": name, "runs": runs})

    async def ended(self, name: str, runs: int) -> int:
        """Ask the script how many of the first have ended."""
        return int((await self._asked({"do": "ended", "name": name, "runs": runs}))["ended"])

    @property
    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError(f"{self.library} is not running")
        return self._process

    async def _start(self) -> None:
        arguments, variables = self.more(self.folder)
        with (self.folder / "script.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(str(self.python), str(SCRIPTS / f"{self.library}_steps.py"), str(self.folder), *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=self.folder,
                env={
                    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
                    "HOME": str(self.folder),
                    "PYTHONPATH": str(ROOT),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    **variables,
                },
                start_new_session=True,
            )
        self.engine = (await self._answer())["ready"]

    async def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        await self._ask(request)
        return await self._answer()

    async def _ask(self, request: dict[str, Any]) -> None:
        stdin = self._running.stdin
        assert stdin is not None
        stdin.write(json.dumps(request).encode() + b"\n")
        await stdin.drain()

    async def _answer(self) -> dict[str, Any]:
        """The next line; RuntimeError if the script failed or exited, TimeoutError if it takes too long."""
        stdout = self._running.stdout
        assert stdout is not None
        async with asyncio.timeout(PATIENCE):
            while line := await stdout.readline():
                if line.startswith(b"{"):  # libraries may print, too
                    answer: dict[str, Any] = json.loads(line)
                    if "error" in answer:
                        raise RuntimeError(answer["error"])
                    return answer
        raise RuntimeError(f"{self.library} exited: {daemon.tail(self.folder / 'script.log')[-500:]}")
