"""The group of commands `plan schedule`."""

from __future__ import annotations

import typer

from plansurvive.apps.schedules.commands import control, create, show

app = typer.Typer(
    help="Run plans at set times, on Temporal Schedules.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("create")(create.create)
app.command("update")(create.update)
app.command("list")(show.list_)
app.command("show")(show.show)
app.command("trigger")(control.trigger)
app.command("pause")(control.pause)
app.command("resume")(control.resume)
app.command("backfill")(control.backfill)
app.command("delete")(control.delete)
