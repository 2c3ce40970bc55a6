"""`plan schedule trigger`, `pause`, `resume`, `backfill`, `delete`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from plansurvive.apps.schedules.commands.show import Name
from plansurvive.apps.schedules.control import (
    backfill_schedule,
    delete_schedule,
    pause_schedule,
    resume_schedule,
    trigger_schedule,
)
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line

Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why, shown with the schedule.")]
ENDED_OTHERWISE = 1


def trigger(
    name: Name,
    overlap: Annotated[
        str | None, typer.Option("--overlap", metavar="POLICY", help="Instead of the schedule's own policy.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a run now, also of a paused schedule. Exit code 1 if that was skipped."""
    found = session.run(lambda here: trigger_schedule(here.client, name, overlap), starts=True)
    if as_json:
        output.show_json({"name": name, **found.model_dump(mode="json")})
    elif found.plan_id:
        output.show(f"plan {line(found.plan_id)}")
    else:
        output.show(f"no run yet: {found.why}")
    if found.skipped:
        raise typer.Exit(ENDED_OTHERWISE)


def pause(name: Name, note: Note = "", as_json: AsJson = False) -> None:
    """Start no further runs; one in progress continues."""
    text = note or f"paused by {session.who()}"
    _act(name, as_json, lambda here: pause_schedule(here.client, name, text), "is paused", paused=True)


def resume(name: Name, note: Note = "", as_json: AsJson = False) -> None:
    """Start runs again. Runs that were due in the meantime are not started; `plan schedule backfill` starts them."""
    text = note or f"resumed by {session.who()}"
    _act(name, as_json, lambda here: resume_schedule(here.client, name, text), "is no longer paused", paused=False)


def backfill(
    name: Name,
    start: Annotated[str, typer.Option("--from", metavar="TIME", help="First time that counts: ISO 8601.")],
    end: Annotated[str, typer.Option("--to", metavar="TIME", help="Last time that counts: ISO 8601.")],
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="POLICY", help="buffer: one after the other; allow: all at once.")
    ] = "buffer",
    as_json: AsJson = False,
) -> None:
    """Start the runs that were due in the past and did not run."""
    times = session.run(lambda here: backfill_schedule(here.client, name, start, end, overlap), starts=True)
    if as_json:
        output.show_json({"name": name, "times": [each.isoformat().replace("+00:00", "Z") for each in times]})
    else:
        output.show(f"{number_of(len(times), 'run')} to make up for; see: plan list --schedule {line(name)}")


def delete(name: Name, as_json: AsJson = False) -> None:
    """Delete a schedule; its runs stay, and one in progress continues."""
    _act(name, as_json, lambda here: delete_schedule(here.client, name), "is deleted", deleted=True)


def _act(name: str, as_json: bool, action: Callable[[Connected], Awaitable[None]], done: str, **outcome: bool) -> None:
    session.run(action, worker=False)
    if as_json:
        output.show_json({"name": name, **outcome})
    else:
        output.show(f"schedule {line(name)} {done}")
