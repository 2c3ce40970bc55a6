"""Which plans need their workspace to themselves, and what they do while they wait for it.

A plan with `workspaceLock: true`, or any plan of a worker with PLANS_WORKSPACE_LOCK=all, starts no step before it holds
the lock on its workspace, and holds it until it has ended. Plans that run as steps of it, and its agents, work under
its lock and ask for none: nobody waits while holding a lock, so there is no deadlock.

Rejected: a file lock (dies with its worker, means nothing on another host), a child workflow of the holder (ended by
continue-as-new), a lease (a worker that renews it may be away for days).
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from plansurvive.plans.guards.lock_state import LockNews, LockState
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run

PREFIX = "workspace-"
"""Of the ids of the workflows that keep locks."""


def needs_lock(run: Run) -> bool:
    """Whether the run must hold the lock on its workspace."""
    return (run.plan.workspace_lock or run.facts.workspace_lock) and not run.options.shares_lock


def is_covered(run: Run) -> bool:
    """Whether a child plan of this run works under its lock, or under that of a plan above."""
    return run.options.shares_lock or needs_lock(run)


def key_of(workspace: str) -> str:
    """The id of the workflow that keeps the lock on a directory."""
    return PREFIX + hashlib.sha256(workspace.encode(errors="surrogatepass")).hexdigest()[:32]


def waits(run: Run) -> bool:
    """Whether the run waits for the lock: nothing of it has started."""
    return run.lock is not None and run.lock.held is None


def asked(run: Run, token: str, now: datetime) -> LockState:
    """Note that the run asks for the lock."""
    run.lock = LockState(key=key_of(run.facts.workspace), token=token, since=now)
    run.note(LogKind.LOCK, f"asks for the lock on {run.facts.workspace}"[:500], now)
    return run.lock


def told(run: Run, news: LockNews, now: datetime) -> bool:
    """Take over what the keeper of the lock says. False if it is not about this run's request, or nothing new."""
    lock = run.lock
    if lock is None or lock.token != news.token or lock.held is not None:
        return False
    if news.held:
        run.lock = lock.model_copy(update={"held": now, "holder": "", "ahead": 0})
        run.note(LogKind.LOCK, "holds the lock on its workspace", now)
        return True
    run.lock = lock.model_copy(update={"holder": news.holder, "ahead": news.ahead})
    who = news.holder.removeprefix("plan-")
    run.note(LogKind.LOCK, f"waits for the lock on its workspace, which plan '{who}' holds"[:500], now)
    return True
