"""The command `plan demo`.

Everything is real and the demo's own: an embedded server, a background worker, files and data in a temporary directory,
so that it neither sees nor kills anything of whoever tries it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from plansurvive.client import runs
from plansurvive.client.apps import part
from plansurvive.client.cli.follow.follow import follow
from plansurvive.client.cli.run import started_from
from plansurvive.client.cli.terminal import environment, session, signals
from plansurvive.client.cli.terminal.output import say, show
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.cli.terminal.signals import INTERRUPTED
from plansurvive.client.errors import AppMissing
from plansurvive.client.ids import workflow_id
from plansurvive.client.plan_file import load
from plansurvive.client.requests.plan_request import Flags
from plansurvive.client.requests.plan_request import prepared as checked
from plansurvive.client.runs import Choice, Started, Summary
from plansurvive.features.files.verbs import undo_whole
from plansurvive.runtime import server as embedded
from plansurvive.runtime.background_worker import ensure_worker, recorded, stop_workers
from plansurvive.runtime.settings import Settings

KILLED_AFTER = 12
"""Completed steps after which the worker is killed: with three files at a time, in the middle of others."""
FAILED = 1

Keep = Annotated[bool, typer.Option("--keep", help="Keep the files, the server and the worker; says where they are.")]


def demo(keep: Keep = False) -> None:
    """Watch a plan survive the death of its worker."""
    place = Path(tempfile.mkdtemp(prefix="plans-demo-"))
    try:
        with environment.environment(environ_of(place, environment.environ())):
            went_well = session.run(lambda here: _demo(here, place, keep), starts=True)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if keep:
            show(
                f"\nEverything is in {place}. To look at it: export PLANS_STATE_DIR={place}/state PLANS_SERVER=embedded"
            )
            show("`plan down` then stops its server and its worker.")
        else:
            signals.run(_removed(place))
    raise typer.Exit(0 if went_well else FAILED)


async def _demo(here: Connected, place: Path, keep: bool) -> bool:
    """Run the plan, kill its worker, count the calls, undo the plan. Returns whether each did as promised."""
    plan, workspace = place / "plan.yaml", place / "workspace"
    prepared(place)
    before = contents(workspace)
    show(f"The plan: {plan}\nIts files: {workspace}\n")
    request = checked(load(str(plan)), Flags(str(workspace), False, None, False, (), "demo"), here.settings)
    async with _page(here):
        started = await started_from(here, request)
        links = [here.link(started.workflow_id), here.page(started.plan_id)]
        show("\n".join(["plan demo", *filter(None, links)]))
        asked = asyncio.Event()

        def row(text: str) -> None:
            show(text)
            if f"plan approve {started.plan_id} " in text:
                asked.set()

        beside = asyncio.create_task(_beside(here, started, asked))
        try:
            summary = await follow(here, started.plan_id, as_json=False, rows=row)
            await beside
        finally:
            beside.cancel()
        went_well = await _counted(here, started, summary)
        went_well = await _undone(here, started, workspace, before) and went_well
        if _somebody_watches() and not keep:
            say("\nThe server and the page stay up until you press Enter; then everything is removed.")
            await asyncio.to_thread(sys.stdin.readline)
    return went_well


def _somebody_watches() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


async def _beside(here: Connected, started: Started, asked: asyncio.Event) -> None:
    """Kill the worker in the middle of the plan. Without a terminal, also approve what it asks for."""
    done = 0
    async for event in runs.watch(here.client, started.plan_id):
        done += event.status == "completed"
        if event.status == "completed" and done == KILLED_AFTER:
            await _kill(here)
        if event.awaiting == "approval" and not _somebody_watches():
            await asked.wait()  # what is asked, with the diff, is printed first
            await _approve(here, started)


def _tell(sentence: str) -> None:
    """Print a line; while there is a board, above it: that takes what is written to `sys.stdout`, and only that."""
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


async def _kill(here: Connected) -> None:
    for worker in recorded(here.settings):
        os.kill(worker.pid, signal.SIGKILL)
        while worker.is_alive():
            await asyncio.sleep(0.01)
        _tell(f"kill -9 {worker.pid}: the worker is gone, with three files in progress.")
    another = await ensure_worker(here.settings, here.connection)
    if another is not None:
        _tell(f"Worker {another.pid} takes over; the interrupted calls are repeated within ten seconds.")


async def _approve(here: Connected, started: Started) -> None:
    for item in (await runs.show(here.client, started.plan_id)).pending:
        _tell("There is no terminal to ask, so the demo approves this call itself.")
        choice = Choice(step_id=item.step_id, by="demo").naming(item)
        await runs.decide(here.client, started.plan_id, choice, approved=True)


async def _counted(here: Connected, started: Started, summary: Summary) -> bool:
    calls = await calls_of(here.client, started.plan_id)
    show(
        f"\n{summary.status}: {calls.completed} calls completed, {calls.twice} of them twice; "
        f"{calls.again} that the kill interrupted ran again."
    )
    return summary.is_completed and not calls.twice


async def _undone(here: Connected, started: Started, workspace: Path, before: dict[str, bytes]) -> bool:
    """Undo the plan, and compare the files with those there were."""
    changed = sum(before.get(path) != data for path, data in contents(workspace).items())

    async def to_its_end(undoing: Started) -> Summary:
        return await runs.wait(here.client, undoing.plan_id)

    undone = await undo_whole(here.client, started.plan_id, None, to_its_end)
    same = contents(workspace) == before
    show(
        f"plan undo demo: {changed} files were new or changed, {len(undone.report.restored)} are restored; "
        f"the workspace is {'as it was' if same else 'NOT as it was'}."
    )
    return same


@asynccontextmanager
async def _page(here: Connected) -> AsyncIterator[None]:
    """The web page, for somebody who watches: its link holds a key, which must not end up in a pipe."""
    if not _somebody_watches():
        yield
        return
    try:
        serving = asyncio.create_task(part("web", "commands").beside(here.settings, here.connection))
    except AppMissing as error:
        say(f"The web page is not served: {error.message}")
        yield
        return
    try:
        while not serving.done() and here.page("demo") is None:
            await asyncio.sleep(0.05)
        yield
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def _removed(place: Path) -> None:
    settings = Settings.read(environ_of(place, environment.environ()))
    await stop_workers(settings)
    await embedded.stop(settings)
    shutil.rmtree(place, ignore_errors=True)


SHOPS = 12
LAST_REPORT = "# What was sold\n\n11 shops, see shops/*.total\n"
KEPT = ("PLANS_CACHE_DIR", "PLANS_TEMPORAL_FROM", "PLANS_SANDBOX")
"""Settings of the machine, which count for the demo as well; all others would lead to somebody's plans."""


def prepared(place: Path) -> Path:
    """Make workspace and plan file in the directory; returns the plan file."""
    workspace = place / "workspace"
    (workspace / "shops").mkdir(parents=True)
    for number in range(1, SHOPS + 1):
        rows = [f"{day},{number * 7 + index}" for index, day in enumerate(("mon", "tue", "wed", "thu", "fri"))]
        (workspace / "shops" / f"shop-{number:02}.csv").write_text("\n".join(rows) + "\n")
    (workspace / "report.md").write_text(LAST_REPORT)
    plan = place / "plan.yaml"
    plan.write_text((files(__package__) / "plan.yaml").read_text())
    return plan


def contents(workspace: Path) -> dict[str, bytes]:
    """Every file of the workspace, by its path."""
    return {str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*") if path.is_file()}


def environ_of(place: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of the demo's commands: server, worker and data of its own, below `place`."""
    others = {name: text for name, text in environ.items() if not name.startswith(("PLANS_", "TEMPORAL_"))}
    kept = {name: environ[name] for name in KEPT if name in environ}
    return others | kept | {"PLANS_STATE_DIR": str(place / "state"), "PLANS_SERVER": "embedded"}


TOOLS = frozenset({"find_files", "read_file", "run_python", "write_file"})


@dataclass(frozen=True)
class Calls:
    """The calls of tools in one plan."""

    completed: int
    twice: int
    """Those that completed more than once."""
    again: int
    """Those that began again, as their worker died under way."""


async def calls_of(client: Client, plan: str) -> Calls:
    """Count the calls in the history of a plan."""
    names: dict[int, str] = {}
    completed, attempts = Counter[str](), dict[str, int]()
    async for event in client.get_workflow_handle(workflow_id(plan)).fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            scheduled = event.activity_task_scheduled_event_attributes
            if scheduled.activity_type.name in TOOLS:
                names[event.event_id] = scheduled.activity_id
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            started = event.activity_task_started_event_attributes
            if started.scheduled_event_id in names:
                attempts[names[started.scheduled_event_id]] = started.attempt
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            number = event.activity_task_completed_event_attributes.scheduled_event_id
            if number in names:
                completed[names[number]] += 1
    twice = sum(count > 1 for count in completed.values())
    return Calls(sum(completed.values()), twice, sum(attempt > 1 for attempt in attempts.values()))
