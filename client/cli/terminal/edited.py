"""What a command prints that has changed a plan, and its option about the plan's version."""

from __future__ import annotations

from typing import Annotated

import typer

from plansurvive.client.cli.terminal import output
from plansurvive.client.ids import plan_id
from plansurvive.plans.execution.revision import Edited

Expect = Annotated[
    int | None, typer.Option("--expect-version", metavar="N", help="Fail if the plan is at another version.")
]


def report(plan: str, edited: Edited, as_json: bool, rows: list[str] | None = None) -> None:
    """Print the new version and what has changed: `rows`, or the diff."""
    if as_json:
        output.show_json({"planId": plan_id(plan), **edited.model_dump(mode="json")})
    else:
        told = [f"  {row}" for row in rows or edited.diff]
        output.show("\n".join([f"{plan_id(plan)}: version {edited.version}", *told]))
        for warning in edited.warnings:
            output.say(f"Warning: {warning}")
