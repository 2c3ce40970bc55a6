"""`plan up`: the server and a worker in the foreground, each started again when it dies, until this process is stopped.

The worker ends with this process, whatever ends it. The embedded server stays for the commands that come after, unless
this process started it and is stopped in an orderly way. A PID file says which code runs, for `plan doctor`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from plansurvive.plans.errors import PlanError
from plansurvive.runtime import daemon
from plansurvive.runtime import server as embedded
from plansurvive.runtime.background_worker import code_version, stop_workers, worker_command, worker_environ
from plansurvive.runtime.connect import Connection, Origin, reach
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.start_files import marks
from plansurvive.runtime.worker_pool import Processes

LOOK_SECONDS = 1.0
AGAIN_SECONDS = 10.0
"""Seconds until another attempt to start a server that does not start."""


class Up(daemon.Process):
    """A running `plan up`."""

    code: str
    """As `runtime.background_worker.code_version`, with these tools."""
    tools: tuple[str, ...] = ()

    def runs_todays_code(self, settings: Settings) -> bool:
        """Whether neither the interpreter nor the code has changed since it started."""
        return self.code == code_version(settings.with_flags(tools=self.tools))


def recorded(settings: Settings) -> Up | None:
    """The `plan up` of this state directory, if one is running."""
    return Up.read(_record(settings))


def changed_since(settings: Settings) -> list[str]:
    """The files that the running `plan up` read at its start, and that have changed since; none if none runs."""
    if recorded(settings) is None:
        return []
    began = _record(settings).stat().st_mtime_ns
    return [path for path, mark in marks(settings).items() if mark[0] > began]


async def run(
    settings: Settings, environ: Mapping[str, str], say: Callable[[str], None], show: Callable[[Connection], None]
) -> int:
    """Run server and worker until SIGTERM or SIGINT, or until the server is stopped by a command; returns an exit code.

    `environ`: variables of the worker, besides those of the settings. `show` is called once there is a connection.
    Raises NotConnected, SettingError.
    """
    was_running = embedded.recorded(settings) is not None
    connection = await reach(settings, say)
    is_embedded = connection.origin is Origin.EMBEDDED
    keeper = _Keeper(settings, say, is_ours=is_embedded and not was_running)
    try:
        _write_record(settings)
        show(connection)
        pool = Processes(worker_command(), 1, say, _variables(settings, environ, connection))
        looking = asyncio.create_task(keeper.keep(pool)) if is_embedded else None
        code = await pool.run()
        if looking:
            looking.cancel()
        return code
    finally:
        if keeper.is_ours:
            await stop_workers(settings)  # background workers of other commands are useless without the server
            await embedded.stop(settings)
            say("Stopped the server; its data stays on disk.")


class _Keeper:
    """Starts the embedded server again when it has died; stops the worker when a command stopped the server."""

    def __init__(self, settings: Settings, say: Callable[[str], None], *, is_ours: bool) -> None:
        self._settings, self._say, self.is_ours = settings, say, is_ours

    async def keep(self, pool: Processes) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            server = embedded.last(self._settings)
            if server is None or server.is_stopped:
                self._say("The server was stopped, and so is its worker.")
                self.is_ours = False
                return pool.stop()
            if not server.is_alive():
                await self._start_again()

    async def _start_again(self) -> None:
        self._say("The server has died; starting it again.")
        try:
            await embedded.ensure(self._settings, self._say)
            self.is_ours = True
        except PlanError as error:
            self._say(f"{error.message}\nTrying again in {AGAIN_SECONDS:g} s.")
            await asyncio.sleep(AGAIN_SECONDS)


def _variables(settings: Settings, environ: Mapping[str, str], connection: Connection) -> dict[str, str]:
    """The worker's environment. It finds the embedded server by its PID file, wherever that is when it starts."""
    others = {name: text for name, text in environ.items() if not name.startswith(("PLANS_", "TEMPORAL_"))}
    own = worker_environ(settings, connection)
    if connection.origin is Origin.EMBEDDED:
        own = {name: text for name, text in own.items() if name != "TEMPORAL_ADDRESS"} | {"PLANS_SERVER": "embedded"}
    return others | own


def _write_record(settings: Settings) -> None:
    settings.make_state_dir()
    began = daemon.began(os.getpid()) or ""
    code, tools = code_version(settings), settings.tools
    Up(pid=os.getpid(), began=began, code=code, tools=tools).write(_record(settings))


def _record(settings: Settings) -> Path:
    return settings.state_dir / "up.json"
