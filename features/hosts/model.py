"""What others note of the host of a run: who shares its place, as `children` does."""

from __future__ import annotations

from datetime import datetime

from plansurvive.plans.hosts.host import Host
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run


def arrived(run: Run, lost: Host, step_id: str | None, now: datetime) -> None:
    """Note what follows from the run's new place."""
    if run.host is None:
        return
    run.facts = run.facts.model_copy(update={"workspace": run.host.workspace})
    text = f"host '{lost.name}' is lost: the plan continues at '{run.host.name}' with the files of its last checkpoint"
    run.note(LogKind.WARNING, text, now, step_id)
