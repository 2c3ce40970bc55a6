"""How an ended run is continued in a new one, whatever kind of workflow it was."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NamedTuple

from temporalio.client import Client

from plansurvive.client.verbs.start import Started
from plansurvive.plans.run import Run
from plansurvive.runtime.sides import sides

NextRun = Callable[[Client, str, datetime, str], Awaitable[Started]]
"""Starts the run that continues an ended one. Its arguments: the client, the new id, the time, the task queue."""


class Continued(NamedTuple):
    """How an ended run is continued."""

    by: str
    """Who resumes it, or has steps of it run again."""
    reruns: bool
    """Steps of it run again."""
    verified: bool
    """A page's login vouches for who does it."""
    is_changed: bool
    """With other arguments or limits."""
    waivers: bool
    """False: no person continues it."""
    workspace: str | None
    """The absolute path of the directory to work in, if another one."""

    def begun(self, run: Run) -> Run:
        """The new run where it is to work, who continues it, and without waivers unless a person does."""
        new = placed(run, self.workspace)
        options = new.options.model_copy(update={"continued_by": self.by[:200], "vouched": self.verified or None})
        new = new.model_copy(update={"options": options})
        return new if self.waivers else unwaived(new)


def next_of_features(state: Any, how: Continued) -> NextRun | None:
    """Starts the next run of a workflow of a feature, of which this is the state; None if it is a plan's.

    Raises Refused.
    """
    return next((begin for side in sides("resuming") if (begin := side.next_run(state, how)) is not None), None)


def id_in_features(child: str, plan_id: str, step_id: str) -> str:
    """The id of the first workflow that a step of this plan begins, if it is of the same kind as `child`, and that is a
    feature's; empty if it is none.
    """
    return next((name for side in sides("resuming") if (name := side.id_like(child, plan_id, step_id))), "")


def placed(run: Run, workspace: str | None) -> Run:
    """A new run in the directory that a person named: what is there now is its workspace, whatever was before."""
    if workspace is None:
        return run
    granted = None if run.options.granted is None else [*run.options.granted, workspace]
    options = run.options.model_copy(update={"workspace": workspace, "granted": granted, "directories": {}})
    return run.model_copy(update={"options": options})


def unwaived(run: Run) -> Run:
    """A new run that no person started, as one of an agent over MCP: whatever the plan waives asks after all."""
    options = run.options.model_copy(update={"waivers": False, "approve_all": False, "owns": []})
    return run.model_copy(update={"options": options, "owns": [], "remembered": {}})
