"""`plan quotas`: how many plans a label may have at a time, which run, and which wait."""

from __future__ import annotations

from collections.abc import Sequence

from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.features.quotas.quotas_file import file_of, read_quotas
from plansurvive.features.quotas.views import rows
from plansurvive.plans.text.safe_text import line

MAX_SHOWN = 10
"""Plans of a label that are listed; `--json` has all."""


def quotas(as_json: AsJson = False) -> None:
    """Show the limits of plans per label, and which wait."""
    session.run(lambda here: _show(here, as_json))


async def _show(here: Connected, as_json: bool) -> None:
    named, found = read_quotas(here.settings), await rows(here.client)
    if as_json:
        output.show_json({"labels": dict(named), "now": [row.model_dump(mode="json") for row in found]})
        return
    if not named and not found:
        output.show(f"no quotas are set; {file_of(here.settings)} sets them (docs/quotas.md)")
    for label, most in named.items():
        each = "" if "=" in label else ", for each of its values"
        output.show(f"{line(label)}: {_plans(most)} at a time{each}")
    for row in found:
        output.show(f"{line(row.label)}: {len(row.running)} of {row.most} running, {len(row.waiting)} waiting")
        _list("runs", row.running)
        _list("waits", row.waiting)


def _list(word: str, plans: Sequence[str]) -> None:
    for each in plans[:MAX_SHOWN]:
        output.show(f"  {word}: {line(each.removeprefix('plan-'))}")
    if len(plans) > MAX_SHOWN:
        output.show(f"  and {len(plans) - MAX_SHOWN:,} more")


def _plans(number: int) -> str:
    return "1 plan" if number == 1 else f"{number:,} plans"
