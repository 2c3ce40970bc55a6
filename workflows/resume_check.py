"""Before a resumed run begins: checks which files differ from what the earlier run saw."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from plans.files.file_check import FileDifferences, FilesSeen
from plans.run import Run
from workflows import policies

MAX_TOLD = 50


def is_unwritten(run: Run) -> bool:
    """Whether the plan is yet to be written by the LLM."""
    return bool(run.request) and not run.resumes


async def look_at_files(run: Run) -> list[str]:
    """Tell which files were changed or deleted since the earlier run saw them, in the log as well. Never fails it."""
    seen = FilesSeen.of(run.files, run.facts.workspace, run.facts.workspaces)
    if not seen.stamps:
        return []
    try:
        found: FileDifferences = await workflow.execute_activity(
            "compare_files",
            seen,
            result_type=FileDifferences,
            task_queue=run.plan.queue,
            activity_id="compare_files",
            summary=f"look whether {len(seen.stamps)} files are as they were",
            start_to_close_timeout=policies.SNAPSHOT.start_to_close,
            retry_policy=policies.SNAPSHOT.retry_policy,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        run.note("warning", f"the files could not be looked at: {error.cause}", workflow.now())
        return []
    told = [f"file '{path}' was changed since the earlier run saw it" for path in found.changed[:MAX_TOLD]]
    told += [f"file '{path}' was deleted since the earlier run saw it" for path in found.deleted[:MAX_TOLD]]
    more = len(found.changed) + len(found.deleted) - len(told)
    told += [f"{more} other files are not as the earlier run saw them"] if more else []
    for text in told:
        run.note("changed", text, workflow.now())
    return told
