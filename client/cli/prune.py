"""The command `plan prune`: delete stored values that no plan refers to any more."""

from __future__ import annotations

from typing import Annotated

import typer

from client.cli import output, session
from client.cli.options import AsJson
from client.cli.session import Connected
from client.cli.spans import duration
from client.prune import Pruned
from client.prune import prune as sweep


def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="Only values older than this: 90s, 30m, 1h, 7d.")
    ] = "1h",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove stored values that no plan refers to. Values of running plans and of plans still on the server stay."""
    age = duration(older_than, "--older-than")

    async def act(here: Connected) -> Pruned:
        return await sweep(here.client, here.settings, older_than=age, dry_run=dry_run)

    found = session.run(act, worker=False)
    if as_json:
        output.show_json(found.model_dump(mode="json"))
        return
    verb = "Would free" if found.dry_run else "Freed"
    output.show(
        f"{verb} {size(found.removed_bytes)}: {found.removed} values that none of {found.workflows} workflow runs"
        f" uses.\nKept {size(found.kept_bytes)}: {found.kept} values in use"
        + (f", and {found.young} younger than {older_than}." if found.young else ".")
    )


def size(number: int) -> str:
    """Format a number of bytes."""
    amount = float(number)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1_000:
            return f"{amount:.3g} {unit}"
        amount /= 1_000
    return f"{amount:.1f} GB"
