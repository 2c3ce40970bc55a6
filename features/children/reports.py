"""What a child plan tells its parent while it runs: its status, its steps by status, and the decisions it awaits.

Questions, the status and what was spent are reported at once. Progress alone is reported a few times only, so that a
child of many steps does not fill its parent's history.
"""

from __future__ import annotations

from typing import Any

from plansurvive.features.children.files import placed
from plansurvive.plans.child_state import ChildReport, ParentLink
from plansurvive.plans.children.asked import asked_of
from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.execution.tool_history import files_of_run
from plansurvive.plans.execution.undo_run import tool_undos
from plansurvive.plans.run import DONE, ENDED, Run, Status
from plansurvive.plans.run.unanswered import lacks_answers_alone
from plansurvive.plans.run.undone import to_undo
from plansurvive.plans.step_state import DENIALS

REPORTS = 10
"""Reports of a child plan that are about progress alone."""
REPORT_PATHS = 100
"""Files of each kind in the last report."""


def report_of(run: Run, standing: ReadinessIndex) -> ChildReport:
    """The report of a run now, with the questions of plans below it."""
    asked, more = asked_of(standing)
    counts = {status.value: number for status in Status if (number := standing.counts[status])}
    if standing.denials:
        counts |= {"skipped": counts["skipped"] - standing.denials.total()}
        counts |= {word: standing.denials[word] for word in DENIALS.values()}
    counts = {"total": len(run.steps), **{name: number for name, number in counts.items() if number}}
    opened = run.opened.get(run.batch.step_id) if run.batch is not None else None
    failed = opened.failed if opened is not None else 0
    return ChildReport(
        status=run.status.value, counts=counts, pending=asked, more=more, failed_items=failed,
        denied_items=_denied_items(run), undos=len(to_undo(run)) if run.status in ENDED else 0,
        tool_undos=tool_undos(run) if run.status in ENDED else 0, lacks_answers=lacks_answers_alone(run),
    )  # fmt: skip


def _denied_items(run: Run) -> int:
    """Of an ended batch, the number of items that were denied."""
    if run.batch is None or run.batch.step_id not in run.opened or run.status not in ENDED:
        return 0
    return sum(run.steps[name].counts_as_denied for name in run.outline.nodes[run.batch.step_id].children)


def is_due(run: Run, before: ChildReport | None, now: ChildReport, spent: bool) -> bool:
    """Whether to report. `spent`: LLM requests have ended since the last report."""
    link = run.parent
    if link is None:
        return False
    if before is None or (before.status, before.pending, before.more) != (now.status, now.pending, now.more):
        return True
    if spent and link.asks:
        return True  # the parent may grant the next request to another child
    return spent or _finished(now) - _finished(before) >= max(1, now.counts.get("total", 0) // REPORTS)


def message_of(run: Run, report: ChildReport, **more: Any) -> dict[str, Any]:
    """The message AgentProgress of a child plan."""
    link = run.parent
    return {
        "stepId": link.step_id if link else "",
        "agentId": f"plan-{run.plan.id}",
        # Workers of 1.0.0 do not know the field.
        "child": report.model_dump(mode="json", exclude=set() if report.tool_undos else {"tool_undos"}),
        "spent": run.ledger.spent(run.llm_seconds).model_dump(mode="json", exclude_defaults=True),
        "finished": finished_requests(run),
        **(_files(run) if run.ended else {}),
        **more,
    }


def _files(run: Run) -> dict[str, Any]:
    """The files of an ended run for its last report: of one that was cancelled, its parent gets no result."""
    of_parent = run.options.granted[0] if run.options.granted and not run.is_guest else run.facts.workspace
    files = placed(files_of_run(run), run.facts.workspace, of_parent)
    return {name: list(files[name])[:REPORT_PATHS] for name in ("wrote", "deleted", "shared", "sharedWith")}


def wanted_request(link: ParentLink) -> int:
    """The number of the LLM request to ask the parent for; 0: none is wanted, or none would be granted."""
    return link.permitted + 1 if link.asks and link.asked > link.permitted and not link.refusal else 0


def finished_requests(run: Run) -> int:
    """How many of the LLM requests that the parent granted have ended: those begun, less those under way."""
    link = run.parent
    open_ones = len(run.ledger.open) + sum(account.open for account in run.ledger.accounts.values())
    return max(0, link.used - open_ones) if link else 0


def _finished(report: ChildReport) -> int:
    return sum(report.counts.get(status.value, 0) for status in DONE)
