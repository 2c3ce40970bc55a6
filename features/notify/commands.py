"""`plan notify`: the targets of notifications, and a test message to one. Needs no server."""

from __future__ import annotations

from typing import Annotated

import typer

from plansurvive.client.cli.terminal import environment, output, signals
from plansurvive.client.cli.terminal.options import AsJson, group
from plansurvive.features.notify.listing import list_targets, send_test
from plansurvive.plans.text.safe_text import line

app = group("List the targets of notifications, and test one.")

Target = Annotated[str, typer.Argument(metavar="TARGET", help="Name of a target; `plan notify list` shows them.")]
UNUSABLE = 1


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the targets of notify.toml, without addresses. Exit code 1 if one cannot be used."""
    found = list_targets(environment.settings())
    if as_json:
        output.show_json([each.model_dump(mode="json") for each in found])
    elif not found:
        output.show("no targets; docs/notifications.md says how to name some")
    for each in () if as_json else found:
        more = f", notified of {', '.join(each.on)} of every plan" if each.on else ""
        output.show(f"{each.name}: {each.kind}{', with links' if each.links else ''}{more}")
        if each.problem:
            output.show(f"  {line(each.problem)}")
    if any(each.problem for each in found):
        raise typer.Exit(UNUSABLE)


@app.command("test")
def send(target: Target, as_json: AsJson = False) -> None:
    """Send a test message to a target, from this machine."""
    signals.run(send_test(environment.settings(), target))
    if as_json:
        output.show_json({"target": target, "sent": True})
    else:
        output.show(f"sent a test message to {target}")
