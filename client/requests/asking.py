"""Which steps of a plan that exists will still ask a person: what its run says, not only what the plan says.

A waiver counts only as the plan was started with: not where a step was edited since, not in what an LLM wrote.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from plansurvive.client.feature import language
from plansurvive.plans.definition.checks.will_ask import Asking, Ground, will_ask
from plansurvive.plans.definition.scopes import UNDO, bodies, path_in, walk, with_bodies
from plansurvive.plans.expressions.references import find
from plansurvive.plans.files.name_patterns import ProtectedNames
from plansurvive.plans.model import Step, ToolSpec
from plansurvive.plans.run import DONE, Run, Status
from plansurvive.plans.run.undone import is_of_edited
from plansurvive.runtime.settings import Settings


def asking_of(run: Run, tools: Mapping[str, ToolSpec], settings: Settings) -> list[Asking]:
    """The steps of a run that will wait for a person, in reading order; without those done, skipped or decided.

    Files are looked for on this machine; if the workspace is not here, every file may be there. Not `first_run`: it
    asks if there is a file then that is known only when it runs.
    """
    from plansurvive.activities.provenance.shell_writes import (
        written_by_shell,  # lazily: most pages need no parser of shells
    )
    from plansurvive.plans.run import as_it_stands  # `plan check` knows no runs

    place = Path(run.facts.workspace or run.options.workspace or run.plan.workspace or "")
    is_here = place.is_absolute() and place.is_dir()
    ground = Ground(
        tools=tools,
        exists=lambda name: not is_here or os.path.lexists(place / name),
        written_by_shell=written_by_shell,
        names=ProtectedNames(settings.protected),
        strict=run.facts.strict_approvals,
        language=language(),
        is_begun=True,
    )
    plan = as_it_stands(run)
    steps = [_as_it_counts(run, step, step.id) for step in plan.steps]
    counted = plan.model_copy(update={"steps": steps, "owns": run.owns})
    found = will_ask(counted, ground, approve_all=run.options.approve_all)
    steps_by_path = dict(walk(counted))
    return [
        each
        for each in found
        if (each.first_run or (each.step_id in steps_by_path and find(steps_by_path[each.step_id].args.get("path"))))
        and not _is_settled(run, each.step_id.split(".")[0], each.step_id)
    ]


def _as_it_counts(run: Run, step: Step, path: str) -> Step:
    """The step and those inside it, without the waivers that do not count."""
    void = step.requires_approval is False and (is_of_edited(run, path) or not run.options.waivers)
    if path in run.denied:
        step = step.model_copy(update={"requires_approval": True})
    elif void:
        step = step.model_copy(update={"requires_approval": None})
    rule, own = step.undo, f"{path}.{UNDO}"
    if rule is not None and rule.requires_approval is False and (is_of_edited(run, own) or not run.options.waivers):
        step = step.model_copy(update={"undo": rule.model_copy(update={"requires_approval": None})})
    if not any(True for _ in bodies(step)):
        return step
    places = {body.part: path_in(body, path) for body in bodies(step)}
    return with_bodies(step, lambda part, inner: _as_it_counts(run, inner, f"{places[part]}{inner.id}"))


def _is_settled(run: Run, top: str, path: str) -> bool:
    """Whether the step asks no more: it is done, or a person has decided about it."""
    state = run.steps.get(path if path.endswith(f".{UNDO}") else top)  # an undo asks although its step is done
    if state is not None and (state.status in DONE or state.status is Status.FAILED):
        return True
    return path in run.decisions and not (state is not None and state.awaiting)
