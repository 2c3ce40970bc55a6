"""What undos have done to the files of an ended plan since: its next run does those steps again, on these files.

Where `undo-PLAN` says that there was an undo, the workers are asked what it was: the records of changes have the marks
of all undos, of the plan's earlier runs, agents and child plans as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import groupby

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.children.naming import parts
from plansurvive.client.ids import recorded_id
from plansurvive.client.rpc import RPC_TIMEOUT, translated
from plansurvive.client.undos import undo_workflow
from plansurvive.features.files.family import Relative, family, undone_with
from plansurvive.features.files.undo_rules import is_compensation
from plansurvive.features.files.verbs import changes_of
from plansurvive.plans.children.family import is_of_earlier_run, present
from plansurvive.plans.files.changes import CallChanges, FileChange, RestoredFile, RestoredFiles
from plansurvive.plans.flow.ids import lineage
from plansurvive.plans.run import Run

AT_ONCE = 16
"""Undos that are looked for at a time."""


async def restored_files(client: Client, run: Run) -> RestoredFiles | None:
    """What undos have done to the files of an ended plan; None: nothing. Raises NoWorker."""
    name = run.plan.id or ""
    places = [*[each async for each in undone_with(client, name)], *_below(run)]
    for first in range(0, len(places), AT_ONCE):
        if any(await asyncio.gather(*(_is_undone(client, each) for each in places[first : first + AT_ONCE]))):
            break
    else:
        return None
    relatives = await family(client, name)
    report = await changes_of(client, name, relatives)
    calls = [call for call in report.calls if not is_compensation(call.step_id)]
    return RestoredFiles(steps=_steps(run, _runs(relatives), calls), files=_files(run, calls))


def _below(run: Run) -> list[str]:
    """The agents and child plans of the run's steps, which may have been undone by themselves."""
    found = (present(run, run.outline.step(name), state) for name, state in run.steps.items() if not state.closes)
    return [name for name in dict.fromkeys(found) if name is not None and recorded_id(name)]


async def _is_undone(client: Client, plan: str) -> bool:
    """Whether files of a plan, and of all that is its own, were undone, or may have been."""
    try:
        await client.get_workflow_handle(undo_workflow(plan)).describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise translated(error, plan) from error
    return True


def _runs(relatives: Sequence[Relative]) -> dict[str, int]:
    """By workflow of the plan's set, which of the plan's runs it belongs to, the first one being 1."""
    found, number = dict[str, int](), 0
    for each in relatives:
        is_run = not each.prefix and not (each.run is not None and each.run.closing is not None and each.run.closing.of)
        number += is_run
        found[each.id] = number
    return found


def _own(run: Run, path: str) -> str:
    """The step of the plan itself that a call was made for: `deploy` for `deploy/upload`, an agent's for its call."""
    return next((name for name in lineage(parts(path)[0]) if name in run.steps), "")


def _steps(run: Run, numbers: Mapping[str, int], calls: Sequence[CallChanges]) -> list[str]:
    """The steps whose last calls that changed files were undone. What an earlier run did counts for a step that this
    one has taken over, unless a later one did it again."""
    last, by_step = max(numbers.values(), default=0), dict[str, list[CallChanges]]()
    for call in calls:
        by_step.setdefault(_own(run, call.step_id), []).append(call)
    found = list[str]()
    for name, made in by_step.items():
        if not name:
            continue
        is_kept = is_of_earlier_run(run, run.steps[name])
        which = {numbers.get(call.plan_id, 0) for call in made} - ({last} if is_kept else set())
        newest = max(which, default=0) if is_kept else last
        its = (call for call in made if numbers.get(call.plan_id, 0) == newest)
        if any(call.undone or any(each.undone for each in call.changes) for call in its):
            found.append(name)
    return found


def _files(run: Run, calls: Sequence[CallChanges]) -> list[RestoredFile]:
    """The files whose last change was undone, as they are now."""
    changes = [(call.workspace, change.path, call, change) for call in calls for change in call.changes]
    changes.sort(key=lambda each: (*each[:2], each[2].time))
    found = list[RestoredFile]()
    for (workspace, path), group in groupby(changes, key=lambda each: each[:2]):
        chain = [(call, change) for _, _, call, change in group]
        stands = max((at for at, (_, change) in enumerate(chain) if change.undone is None), default=-1)
        if stands == len(chain) - 1:
            continue
        (call, first), before = chain[stands + 1], _left(chain, stands)
        state = first.before if first.before is not None else before
        found.append(
            RestoredFile(
                step_id=_own(run, call.step_id), workspace=workspace, path=path, state=state, size=first.size,
                ours=stands >= 0 and state == before,
            )
        )  # fmt: skip
    return found


def _left(chain: Sequence[tuple[CallChanges, FileChange]], at: int) -> str | None:
    """The state in which a change left its file; None if there is none, or if that is not known."""
    return chain[at][1].after if at >= 0 else None
