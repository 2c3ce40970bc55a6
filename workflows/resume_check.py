"""On resume: reports files that were changed or deleted since the earlier run last saw them."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from plansurvive.plans.files.file_check import FileDifferences, FilesSeen
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run
from plansurvive.plans.text.safe_text import quoted
from plansurvive.workflows import policies

MAX_LISTED = 50
"""At most so many changed files, and as many deleted ones, are listed by name."""


async def compare_files(run: Run) -> list[str]:
    """Sentences about files that were changed or deleted since the earlier run saw them, also added to the log.

    Of files that kept steps read, `run.kept.readers` has those that changed from then on. A failing check becomes a
    warning in the log.
    """
    readers, run.kept.readers = run.kept.readers, {}
    directory = run.host.directory if run.host is not None else run.facts.directories.get("")
    seen = FilesSeen.of(run.files, run.facts.workspace, run.facts.workspaces, directory)
    if not seen.stamps:
        return []
    try:
        differences: FileDifferences = await workflow.execute_activity(
            "compare_files",
            seen,
            result_type=FileDifferences,
            task_queue=run.home_queue,
            activity_id="compare_files",
            summary=f"check {len(seen.stamps)} files for changes",
            # At the plan's own place it has just been seen that the host lives.
            schedule_to_start_timeout=run.host.wait if run.host is not None and run.host.guest else None,
            start_to_close_timeout=policies.SNAPSHOT.start_to_close,
            retry_policy=policies.SNAPSHOT.retry_policy,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        run.note(LogKind.WARNING, f"could not check which files changed: {error.cause}", workflow.now())
        return []
    changed, deleted = differences.changed, differences.deleted
    run.kept.readers = {path: readers[path] for path in changed if readers.get(path)}
    lines = [f"file '{path}' was changed since the earlier run saw it" for path in changed[:MAX_LISTED]]
    lines += [f"file '{path}' was deleted since the earlier run saw it" for path in deleted[:MAX_LISTED]]
    more = len(changed) + len(deleted) - len(lines)
    lines += [f"{more} more files were changed or deleted since the earlier run saw them"] if more else []
    for path, names in list(run.kept.readers.items())[:MAX_LISTED]:
        again = f"once this run has ended: plan rerun {run.plan.id} --from {quoted(names[0])}"
        lines.append(f"step '{names[0]}' keeps what it read from '{path}'; to read it again, {again}")
    for line in lines:
        run.note(LogKind.CHANGED, line, workflow.now())
    return lines
