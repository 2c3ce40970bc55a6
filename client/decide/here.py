"""Finds out whether the files of a call can be read on this machine, and compares them; else says what the plan knows.

A workspace on another machine may have the same path as a directory here: files are compared only if the server is on
this machine and a worker of the call's queue is, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.client.decide.call_diff import CallDiff, call_diff, path_of
from plansurvive.client.rpc import ask
from plansurvive.plans.errors import PlanError
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.text.safe_text import exact, line
from plansurvive.plans.views.models.card import Card
from plansurvive.runtime.connect import Connection
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import serves_this_machine

PATIENCE = 3.0
"""Seconds that reading a file may take: it may be on a network that does not answer."""


async def diffs(connection: Connection, settings: Settings, plan: str, items: Sequence[Card]) -> list[CallDiff | None]:
    """Of each call of a plan, the change to a file as it is now; None for calls that change no file they name."""
    rules, found, is_here = WorkspaceRules.of(settings), list[CallDiff | None](), dict[str | None, bool]()
    for item in items:
        if path_of(item) is None:
            found.append(None)
            continue
        if item.queue not in is_here:
            is_here[item.queue] = connection.is_on_this_machine and (
                item.queue is None or await serves_this_machine(connection.client, item.queue)
            )
        local = await _compared(item, rules) if is_here[item.queue] else None
        found.append(local or await _elsewhere(connection, plan, item))
    return found


async def _compared(item: Card, rules: WorkspaceRules) -> CallDiff | None:
    try:
        return await asyncio.wait_for(asyncio.to_thread(call_diff, item, rules=rules), PATIENCE)
    except TimeoutError:
        return CallDiff("unknown", path_of(item) or "", f"No diff: the file could not be read within {PATIENCE:g} s")


async def _elsewhere(connection: Connection, plan: str, item: Card) -> CallDiff:
    """What the plan knows of a file that only the machine of its worker can read."""
    path = path_of(item) or ""
    text = f"No diff: '{exact(line(path))}' is on the machine of the plan's worker, which this page cannot read"
    try:
        known = (await ask(connection.client, plan, "stamps", {"paths": [path]}, patience=PATIENCE)).get(path)
        stamp = Stamp.model_validate(known) if known else None
    except (PlanError, ValueError, AttributeError):
        return CallDiff("unknown", path, text)
    if stamp is None:
        return CallDiff("unknown", path, f"{text}; the run has neither read nor written it so far")
    seen = "was deleted by the run" if stamp.state == "deleted" else f"had {stamp.size:,} bytes (xxh3 {stamp.hash})"
    return CallDiff("unknown", path, f"{text}; when the run last saw it, it {seen}")
