"""The command `plan prune`: delete stored values that no plan refers to any more."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from plansurvive.client.apps import part
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.cli.terminal.spans import duration
from plansurvive.features.upkeep.prune import Pruned
from plansurvive.features.upkeep.prune import prune as sweep


def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="Only values older than this: 90s, 30m, 1h, 7d.")
    ] = "1h",
    records: Annotated[
        str | None,
        typer.Option(
            "--records", metavar="TIME", help="Also records of deleted plans that are older than this, and logs."
        ),
    ] = None,
    audit_records: Annotated[
        bool, typer.Option("--audit-records", help="With --records: the audit records among them as well.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option("--schedule", metavar="TIME", help="Have a worker do it at this interval, from now on: 1d."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove stored values that no plan refers to. Values of running plans and of plans still on the server stay."""
    age = duration(older_than, "--older-than")
    kept = duration(records, "--records") if records else None
    if every is not None:
        if audit_records:
            raise typer.BadParameter("no schedule removes audit records; do it by hand", param_hint="--audit-records")
        _schedule(every, age, kept, dry_run=dry_run, as_json=as_json)
        return

    async def act(here: Connected) -> Pruned:
        return await sweep(
            here.client, here.settings, older_than=age, records=kept, dry_run=dry_run, audit=audit_records
        )

    found = session.run(act, worker=False)
    if as_json:
        output.show_json(found.model_dump(mode="json"))
        return
    output.show(_report(found, older_than, with_records=kept is not None))


def _report(found: Pruned, older_than: str, *, with_records: bool) -> str:
    verb = "Would free" if found.dry_run else "Freed"
    return (
        f"{verb} {size(found.removed_bytes)}: {found.removed} values that none of {found.workflows} workflow runs"
        f" uses.\nKept {size(found.kept_bytes)}: {found.kept} values in use"
        + (f", and {found.young} younger than {older_than}." if found.young else ".")
        + (f"\n{verb} {size(found.records_bytes)}: {found.records} files of records and logs." if with_records else "")
        + f"\n{'Would remove' if found.dry_run else 'Removed'} temporary files of {found.scratch} ended plans."
        * bool(found.scratch)
        + (
            f"\n{verb} {size(found.results_bytes)}: {found.results} files of results not used for long."
            * bool(found.results)
        )
        + "".join(
            f"\n{'Would remove' if found.dry_run else 'Removed'} {number} {name} of plans that the server has no more."
            for name, number in found.leftovers.items()
        )
    )


def _schedule(every: str, age: timedelta, records: timedelta | None, *, dry_run: bool, as_json: bool) -> None:
    interval, hour = duration(every, "--schedule"), timedelta(hours=1)
    if dry_run or min(interval, age, records or hour) < hour:
        text = "a schedule takes 1h or more in --schedule, --older-than and --records, and no --dry-run"
        raise typer.BadParameter(text, param_hint="--schedule")
    upkeep = part("schedules", "upkeep")
    name = session.run(
        lambda here: upkeep.schedule_prune(
            here.client, here.settings.task_queue, interval, older_than=age, records=records
        ),
        worker=False,
    )
    if as_json:
        output.show_json({"schedule": name})
    else:
        output.show(f"Scheduled as {name}: plan schedule show|pause|trigger|delete {name}")


def size(number: int) -> str:
    """Format a number of bytes."""
    amount = float(number)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1_000:
            return f"{amount:.3g} {unit}"
        amount /= 1_000
    return f"{amount:.1f} GB"
