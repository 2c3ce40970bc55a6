"""Commands for the services that plans run on: up, down, worker, doctor."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

import typer
from rich.table import Table
from rich.text import Text

from client.cli import environment, output
from client.cli.options import AsJson
from client.cli.output import say
from client.doctor import Finding, Verdict, examine
from plans.views.safe_text import safe
from runtime import server as embedded
from runtime.background_worker import stop_workers, worker_command, worker_environ
from runtime.connect import Connection, Origin, reach
from runtime.settings import Settings

_VERDICTS = {Verdict.GOOD: ("✓", "green"), Verdict.WARNING: ("!", "yellow"), Verdict.BAD: ("✗", "red")}


def up() -> None:
    """Run server, Temporal UI and worker in the foreground. Runs until Ctrl-C; all data stays on disk."""
    raise typer.Exit(asyncio.run(_up(environment.settings())))


def down(as_json: AsJson = False) -> None:
    """Stop the server and the worker in the background. All data stays on disk."""
    asyncio.run(_down(environment.settings(), as_json))


def worker(context: typer.Context) -> None:
    """Run the steps of plans until stopped. `plan worker --help` lists its flags."""
    sys.stdout.flush()
    command = [*worker_command(), *context.args]
    os.execv(command[0], command)  # noqa: S606 - the worker replaces this process, so that it gets its signals


def doctor(as_json: AsJson = False) -> None:
    """Check this machine: what is installed and what is missing. Nothing is started or changed."""
    findings = asyncio.run(examine(environment.environ()))
    if as_json:
        output.show_json([finding.model_dump(mode="json") for finding in findings])
    else:
        output.out().print(_findings(findings))
    if any(finding.verdict is Verdict.BAD for finding in findings):
        raise typer.Exit(1)


async def _up(settings: Settings) -> int:
    was_running = embedded.recorded(settings) is not None
    connection = await reach(settings, say)
    ours = connection.origin is Origin.EMBEDDED and not was_running
    try:
        output.show(_where(connection))
        return await _work(settings, connection)
    finally:
        if ours:
            await stop_workers(settings)  # background workers of other commands are useless without the server
            await embedded.stop(settings)
            say("Stopped the server; its data stays on disk.")


async def _work(settings: Settings, connection: Connection) -> int:
    """Run a worker in the foreground until it exits; SIGINT and SIGTERM are forwarded to it. Returns its exit code."""
    others = {
        name: text for name, text in environment.environ().items() if not name.startswith(("PLANS_", "TEMPORAL_"))
    }
    variables = others | worker_environ(settings, connection)
    process = await asyncio.create_subprocess_exec(*worker_command(), env=variables, start_new_session=True)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, process.send_signal, number)
    return max(await process.wait(), 0)


async def _down(settings: Settings, as_json: bool) -> None:
    workers = await stop_workers(settings)
    server = await embedded.stop(settings)
    if as_json:
        output.show_json({"workers": [each.pid for each in workers], "server": server.address if server else None})
        return
    stopped = [*(f"worker {each.pid}" for each in workers), *([f"server at {server.address}"] if server else [])]
    output.show(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing was running.")


def _where(connection: Connection) -> str:
    rows = [f"server  {connection.address} ({connection.origin.value})"]
    return "\n".join(rows + ([f"ui      {connection.ui}"] if connection.ui else []))


def _findings(findings: Sequence[Finding]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for finding in findings:
        mark, style = _VERDICTS[finding.verdict]
        table.add_row(Text(mark, style=style), Text(finding.subject, style="bold"), Text(safe(finding.text)))
    return table
