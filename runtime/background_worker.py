"""The background worker: a daemon that runs plans after the command that started them has ended.

Started for the embedded server, and for any server on this machine whose task queue has no worker; never with
PLANS_AUTO_WORKER=off, and never for a remote server. Its PID file in the state directory holds a fingerprint of
everything that determines its behaviour: interpreter, code, settings, address. When the fingerprint changes, the old
worker stops polling and finishes its running steps, and a new one starts beside it. Settings count only for commands
that start work: an approval from a terminal without OPENAI_API_KEY must not take the key from a running agent. It ends
by itself when its state directory is gone or its server stays away (`runtime.presence`), and follows the
embedded server to other ports.

It inherits the environment, as tools of a user may need any variable; commands of plans get none of it. It ends by
itself when its state directory or server is gone, since it is easily forgotten.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from temporalio.service import RPCError

from plansurvive.plans.errors import PlanError
from plansurvive.runtime import daemon
from plansurvive.runtime.base.code_place import CODE, IMPORTED_FROM, IS_CHECKOUT
from plansurvive.runtime.base.wait import locked_async, until
from plansurvive.runtime.connect import Connection, Origin
from plansurvive.runtime.errors import WorkerFailed
from plansurvive.runtime.feature import variables_of_worker
from plansurvive.runtime.presence import AWAY_SECONDS
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.start_files import check_start_files, marks
from plansurvive.runtime.task_queues import WORKER, listeners

START_SECONDS = 180.0
"""A busy machine compiles all of the code first, which takes a minute; a worker that ends is noticed at once."""
LOOK_SECONDS = 2.0
"""How often a command that follows a plan looks whether its background worker is alive."""
_REFUSED = re.compile(r"^BAD_SETTING: (\w+): (.*)\Z", re.MULTILINE | re.DOTALL)
"""What a worker with a wrong setting says last (`runtime.settings.said`)."""
DRAIN_SECONDS = 86_400
"""Seconds that a replaced worker has to finish its running steps."""


class BackgroundWorker(daemon.Process):
    """A running background worker."""

    fingerprint: str
    address: str
    queue: str
    code: str = ""
    """As `code_version`, with these tools; empty: of a version that did not write it."""
    tools: tuple[str, ...] = ()
    given: Mapping[str, str] = {}
    """By variable, a digest of its value, to name those that a later command has otherwise."""

    @property
    def identity(self) -> str:
        """Its worker identity on the server."""
        return f"{WORKER}{self.pid}@{socket.gethostname()}"


def worker_command() -> list[str]:
    """The command that starts a worker: this interpreter, the worker.py beside these packages."""
    # Run by its path from where it is installed, it would find ours in the place of a package `plans` with tools.
    return [sys.executable, *(() if IS_CHECKOUT else ("-P",)), str(CODE / "worker.py")]


async def ensure_worker(
    settings: Settings,
    connection: Connection,
    *,
    as_set: bool = True,
    again: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> BackgroundWorker | None:
    """The background worker, started if needed; None if this server gets none. Raises WorkerFailed, SettingError.

    `as_set`: one with other settings is replaced, which `say` announces; else any that runs today's code will do.
    `again`: none is started but in the place of one that has died; `plan down` leaves none.
    """
    if not settings.auto_worker or not connection.is_on_this_machine:
        return None
    settings.make_state_dir()
    async with locked_async(settings.state_dir / "worker.lock"):
        record = _record(settings, connection)
        if again and BackgroundWorker.last(record) is None:
            return None
        environ = worker_environ(settings, connection)
        present = BackgroundWorker.read(record)
        if present and not _will_do(present, _fingerprint(environ, settings, connection), settings, as_set):
            check_start_files(settings)  # before the old one ends
            if differing := _differing(present, environ):
                say(
                    f"The background worker has other settings than this command ({', '.join(differing)}): a new one"
                    " takes its place, also for the plans that are running."
                )
            _retire(present, record)
            present = None
        if present is None and not await _is_served_by_others(settings, connection):
            check_start_files(settings)
            present = _start(settings, connection, environ, record)
        if present is not None:
            await _wait_until_it_listens(present, connection, record)
        return present


async def keep_worker(settings: Settings, connection: Connection, say: Callable[[str], None]) -> None:
    """Start the background worker again whenever it has died, until this is cancelled. Says so."""
    record = _record(settings, connection)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        last = BackgroundWorker.last(record)
        if last is None or last.is_alive():
            continue
        try:
            if await ensure_worker(settings, connection, as_set=False, again=True) is not None:
                say("The background worker ended unexpectedly; another one has been started.")
        except (PlanError, OSError, RPCError) as error:
            # The server may be away as well: whoever follows the plan says that. The next look tries again.
            if isinstance(error, (WorkerFailed, SettingError)):
                say(error.message)


async def stop_workers(settings: Settings) -> list[BackgroundWorker]:
    """Stop all background workers of this state directory gracefully; returns those that were running."""
    settings.make_state_dir()
    async with locked_async(settings.state_dir / "worker.lock"):
        running = recorded(settings)
        await asyncio.gather(*(each.stop(settings.grace) for each in running))
        for record in settings.state_dir.glob("worker-*.json"):
            record.unlink()
        return running


def recorded(settings: Settings) -> list[BackgroundWorker]:
    """The running background workers of this state directory, including replaced ones."""
    workers = [BackgroundWorker.read(record) for record in sorted(settings.state_dir.glob("worker-*.json"))]
    return [each for each in workers if each]


def _record(settings: Settings, connection: Connection) -> Path:
    """The PID file: one per server, namespace and queue. The embedded server counts as one whatever its port."""
    place = "embedded" if connection.origin is Origin.EMBEDDED else connection.address
    name = _digest([place, connection.client.namespace, settings.task_queue])
    return settings.state_dir / f"worker-{name}.json"


def worker_environ(settings: Settings, connection: Connection) -> dict[str, str]:
    """The worker's environment: the current settings, and the server that this command connected to."""
    temporal = settings.temporal
    if connection.origin is not Origin.CONFIGURED:  # keys, certificates and profiles are for a configured server only
        temporal = {"TEMPORAL_CONFIG_FILE": os.devnull}
    place = {"TEMPORAL_ADDRESS": connection.address, "TEMPORAL_NAMESPACE": connection.client.namespace}
    given = settings.as_environ()
    given.pop("PLANS_DEPLOYMENT", None)  # it is replaced as the code changes: plans that stay with a version would stop
    return {**given, **variables_of_worker(settings, os.environ), **temporal, **place}


def _fingerprint(environ: dict[str, str], settings: Settings, connection: Connection) -> str:
    """What determines a worker's behaviour. Not the address of the embedded server, which a worker follows."""
    follows = {"TEMPORAL_ADDRESS"} if connection.origin is Origin.EMBEDDED else set()
    given = sorted((name, text) for name, text in environ.items() if name not in follows)
    read = [f"{path}:{mark}" for path, mark in marks(settings).items()]
    return _digest([*(f"{name}={text}" for name, text in given), code_version(settings), *read])


def _will_do(present: BackgroundWorker, fingerprint: str, settings: Settings, as_set: bool) -> bool:
    if present.fingerprint == fingerprint:
        return True
    return not as_set and present.code == code_version(settings.with_flags(tools=present.tools))


def _given(environ: dict[str, str]) -> dict[str, str]:
    return {name: _digest([text]) for name, text in environ.items() if name != "TEMPORAL_ADDRESS"}


def _differing(present: BackgroundWorker, environ: dict[str, str]) -> list[str]:
    """The variables that the worker has otherwise; none of a worker whose record does not say."""
    given = _given(environ)
    names = sorted(present.given.keys() | given.keys()) if present.given else []
    return [name for name in names if present.given.get(name) != given.get(name)]


def code_version(settings: Settings) -> str:
    """What changes with the interpreter and with the code of a worker."""
    return _digest([sys.executable, *(f"{path}:{path.stat().st_mtime_ns}" for path in worker_code(settings))])


def worker_code(settings: Settings) -> Iterator[Path]:
    """The source files of a worker: ours, and the files among the user's own tools."""
    yield CODE / "worker.py"
    yield IMPORTED_FROM / "plansurvive" / "__init__.py"
    for package in ("plans", "runtime", "activities", "workflows", "features"):
        yield from sorted((CODE / package).rglob("*.py"))
    yield from (Path(tool) for tool in settings.tools if Path(tool).is_file())


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _retire(worker: BackgroundWorker, record: Path) -> None:
    """Tell a worker to finish and exit. Its PID file is renamed, so that `stop_workers` still finds it."""
    record.replace(record.with_name(f"{record.stem}-{worker.pid}.json"))
    os.kill(worker.pid, signal.SIGTERM)


async def _is_served_by_others(settings: Settings, connection: Connection) -> bool:
    if connection.origin is Origin.EMBEDDED:
        return False
    ours = {worker.identity for worker in recorded(settings)}
    return bool(set(await listeners(connection.client, settings.task_queue)) - ours)


def _start(settings: Settings, connection: Connection, environ: dict[str, str], record: Path) -> BackgroundWorker:
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("PLANS_", "TEMPORAL_"))}
    complete = {**inherited, **environ, "PLANS_GRACE": str(DRAIN_SECONDS)}
    command = [*worker_command(), "--patience", str(AWAY_SECONDS)]
    pid, began = daemon.start(command, record.with_suffix(".log"), complete)
    worker = BackgroundWorker(
        pid=pid,
        began=began,
        fingerprint=_fingerprint(environ, settings, connection),
        address=connection.address,
        queue=settings.task_queue,
        code=code_version(settings),
        tools=tuple(settings.tools),
        given=_given(environ),
    )
    worker.write(record)
    return worker


async def _wait_until_it_listens(worker: BackgroundWorker, connection: Connection, record: Path) -> None:
    log = record.with_suffix(".log")

    async def listens() -> bool:
        if worker.identity in await listeners(connection.client, worker.queue):
            return True
        if not worker.is_alive():
            if refused := _REFUSED.search(daemon.tail(log)):
                raise SettingError({refused[1]: refused[2]})
            raise WorkerFailed(f"The background worker exited at startup. {daemon.log_end(log)}")
        return False

    try:
        async with asyncio.timeout(START_SECONDS):
            await until(listens)
    except TimeoutError:
        text = f"The background worker did not start polling within {START_SECONDS:.0f} s. {daemon.log_end(log)}"
        raise WorkerFailed(text) from None
