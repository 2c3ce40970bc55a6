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

from plansurvive.features.locks.model import Covered, Lock, LockNews, LocksAll, LockState
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.notice import Notice
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import Rules

PREFIX = "workspace-"
"""Of the ids of the workflows that keep locks."""


def needs_lock(run: Run) -> bool:
    """Whether the run must hold the lock on its workspace."""
    if not run.plan.workspace_lock:
        every = run.facts.known_part(LocksAll)
        if every is None or not every.every_plan:
            return False
    return not run.options.part(Covered).is_covered


def is_covered(run: Run) -> bool:
    """Whether a child plan of this run works under its lock, or under that of a plan above."""
    return run.options.part(Covered).is_covered or needs_lock(run)


def key_of(workspace: str) -> str:
    """The id of the workflow that keeps the lock on a directory."""
    return PREFIX + hashlib.sha256(workspace.encode(errors="surrogatepass")).hexdigest()[:32]


def asked(run: Run, token: str, now: datetime) -> LockState:
    """Note that the run asks for the lock."""
    lock = run.part(Lock).state = LockState(key=key_of(run.facts.workspace), token=token, since=now)
    run.notices["locks"] = Notice(text="waits for its workspace", since=now, holds=True)
    run.note(LogKind.LOCK, f"asks for the lock on {run.facts.workspace}"[:500], now)
    return lock


def told(run: Run, news: LockNews, now: datetime) -> bool:
    """Take over what the keeper of the lock says. False if it is not about this run's request, or nothing new."""
    lock = run.part(Lock).state
    if lock is None or lock.token != news.token or lock.held is not None:
        return False
    if news.held:
        run.part(Lock).state = lock.model_copy(update={"held": now, "holder": "", "ahead": 0})
        run.notices["locks"] = Notice(text="has its workspace to itself", since=now)
        run.note(LogKind.LOCK, "holds the lock on its workspace", now)
        return True
    run.part(Lock).state = lock.model_copy(update={"holder": news.holder, "ahead": news.ahead})
    who = news.holder.removeprefix("plan-")
    others = news.ahead - 1
    text = f"waits for its workspace, held by {who}" + (f", with {others} more ahead" if others > 0 else "")
    run.notices["locks"] = Notice(text=text[:500], since=lock.since, plan_id=who[:200], holds=True)
    run.note(LogKind.LOCK, f"waits for the lock on its workspace, which plan '{who}' holds"[:500], now)
    return True


def _for_child(run: Run, step: Step, plan: Plan | None) -> Covered | None:  # noqa: ARG001
    return Covered(is_covered=True) if is_covered(run) else None


RULES = Rules("locks", for_child=_for_child)
