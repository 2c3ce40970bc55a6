"""What a plan keeps of the progress that the agent of a step reports."""

from __future__ import annotations

from datetime import datetime

from plansurvive.plans.child_state import AtWork
from plansurvive.plans.execution.messages import AgentProgress
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run


def note_progress(run: Run, message: AgentProgress, now: datetime) -> None:
    """Apply a progress message to its step, and log it. Ignored if the step was deleted in the meantime."""
    state = run.steps.get(message.step_id)
    if state is None:
        return
    work = (state.known_part(AtWork) or AtWork()).model_copy()
    work.tasks = work.tasks if message.tasks is None else message.tasks
    work.done = work.done if message.done is None else min(message.done, len(work.tasks))
    state.notes = state.notes if message.notes is None else message.notes
    if message.asks is not None and message.asks != work.asks:
        work.asks = message.asks
        run.next_seq()  # what Temporal's UI shows of the plan is written anew
    state.keep(work)
    percent = 100 * work.done // len(work.tasks) if work.tasks else None
    if message.line:
        run.note(LogKind.AGENT, message.line, now, message.step_id, progress=percent)
