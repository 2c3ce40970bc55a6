"""The command `plan why`: which earlier run a step's result is from, or what made its tool run."""

from __future__ import annotations

from plansurvive.client import runs
from plansurvive.client.cli import output, session
from plansurvive.client.cli.options import AsJson, Id, Step


def why(
    plan: Id,
    step: Step,
    as_json: AsJson = False,
) -> None:
    """Show why a step's tool was called, or whose result it has."""
    found = session.run(lambda here: runs.why(here.client, plan, step))
    if as_json:
        output.show_json(found.model_dump(mode="json"))
    else:
        output.show(found.text)
