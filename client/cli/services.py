"""Commands for the services that plans run on: up, down, worker, doctor."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer
from rich.text import Text
from temporalio.service import RPCError

from plansurvive.client.apps import part
from plansurvive.client.cli.terminal import environment, output, signals
from plansurvive.client.cli.terminal.console import SafeConsole
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.client.cli.terminal.output import say
from plansurvive.client.doctor import Finding, Verdict, examine
from plansurvive.client.errors import AppMissing
from plansurvive.client.listing import list_plans
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.lists import some
from plansurvive.plans.text.safe_text import safe
from plansurvive.runtime import server as embedded
from plansurvive.runtime import up as foreground
from plansurvive.runtime.background_worker import stop_workers, worker_command
from plansurvive.runtime.connect import Connection, reach
from plansurvive.runtime.settings import Settings

_NAMED = 5
"""Plans that `plan down` names."""
_PATIENCE = 5.0
"""Seconds to wait for the server's answer before it is stopped."""
_VERDICTS = {Verdict.GOOD: ("✓", "green"), Verdict.WARNING: ("!", "yellow"), Verdict.BAD: ("✗", "red")}


Install = Annotated[
    bool, typer.Option("--install", help="Install it as a service of your user, with systemd or launchd.")
]
Uninstall = Annotated[bool, typer.Option("--uninstall", help="Stop that service and remove it.")]
Web = Annotated[bool, typer.Option("--web/--no-web", help="Serve the web page as well.")]
Print = Annotated[bool, typer.Option("--print", help="Print what --install would write, and change nothing.")]


def up(install: Install = False, uninstall: Uninstall = False, print_: Print = False, web: Web = True) -> None:
    """Run server, UI, worker and web page in the foreground. Runs until Ctrl-C; all data stays on disk."""
    settings, chosen = environment.settings(), install + uninstall + print_
    if chosen > 1:
        raise PlanError("use one of --install, --uninstall and --print", "BAD_USAGE")
    if not chosen:
        raise typer.Exit(signals.run(_up(settings, page=web)))
    service = part("service", "install").Service(settings, environment.environ())
    if print_:
        names = ", ".join(sorted(service.given()))
        output.show(f"# {service.path}\n{service.text()}\n# {service.variables} (mode 600) holds: {names}")
    else:
        output.show(service.install() if install else service.uninstall())


async def _up(settings: Settings, *, page: bool) -> int:
    """Server and worker until they are stopped; `page`: with the web page beside them, in this process."""
    beside_them: list[asyncio.Task[None]] = []

    def show(connection: Connection) -> None:
        output.show(f"server  {connection.address} ({connection.origin.value})")
        if connection.ui:
            output.show(f"ui      {connection.ui}")
        if not page:
            return
        try:
            beside = part("web", "commands").beside
        except AppMissing as error:
            say(f"The web page is not served: {error.message}")
        else:
            beside_them.append(asyncio.create_task(beside(settings, connection)))

    try:
        return await foreground.run(settings, environment.environ(), say, show)
    finally:
        for task in beside_them:
            task.cancel()
        await asyncio.gather(*beside_them, return_exceptions=True)


def down(as_json: AsJson = False) -> None:
    """Stop the server and the worker in the background. All data stays on disk."""
    signals.run(_down(environment.settings(), as_json))


def worker(context: typer.Context) -> None:
    """Run the steps of plans until stopped. `plan worker --help` lists its flags."""
    if context.args and context.args[0] in ("versions", "ramp", "rollback", "drain"):
        versions = part("releases", "commands").app
        code = typer.main.get_command(versions).main(context.args, prog_name="plan worker", standalone_mode=False)
        raise typer.Exit(int(code or 0))
    sys.stdout.flush()
    command = [*worker_command(), *context.args]
    os.execv(command[0], command)  # noqa: S606 - the worker replaces this process, so that it gets its signals


def doctor(as_json: AsJson = False) -> None:
    """Check this machine: what is installed and what is missing. Nothing is started or changed."""
    findings = signals.run(examine(environment.environ()))
    if as_json:
        output.show_json([finding.model_dump(mode="json") for finding in findings])
    else:
        output.out().print(_findings(findings, output.out()), soft_wrap=True)
    if any(finding.verdict is Verdict.BAD for finding in findings):
        raise typer.Exit(1)


async def _down(settings: Settings, as_json: bool) -> None:
    left = await _unfinished(settings)
    workers = await stop_workers(settings)
    server = await embedded.stop(settings)
    if as_json:
        address = server.address if server else None
        output.show_json({"workers": [each.pid for each in workers], "server": address, "unfinished": left})
        return
    stopped = [*(f"worker {each.pid}" for each in workers), *([f"server at {server.address}"] if server else [])]
    output.show(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing was running.")
    if left:
        output.show(f"Not ended: {some(left, _NAMED)}. They continue when the next command starts the server again.")


async def _unfinished(settings: Settings) -> list[str]:
    """The plans of the embedded server that have not ended; none if it does not run, or does not answer soon."""
    if embedded.recorded(settings) is None:
        return []
    with suppress(PlanError, RPCError, TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            connection = await reach(settings.with_flags(server="embedded"))
            return [each.plan_id async for each in list_plans(connection.client, running=True)]
    return []


def _findings(findings: Sequence[Finding], console: SafeConsole) -> Text:
    """A row for each finding, as the console is wide."""
    wide = max(len(finding.subject) for finding in findings)
    rows = []
    for finding in findings:
        mark, style = _VERDICTS[finding.verdict]
        head = Text.assemble((mark, style), "  ", (finding.subject.ljust(wide), "bold"), "  ")
        for each in safe(finding.text).split("\n"):
            rows += output.broken(head + Text(each), console, len(head))
            head = Text(" " * len(head))
    return Text("\n").join(rows)
