"""The command `plan audit`: who did what to a plan, and whether the record of it is whole."""

from __future__ import annotations

from typing import Annotated

import typer

from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson, complete_plan
from plansurvive.features.audit.entries import Act, Entry
from plansurvive.features.audit.ledger import Line
from plansurvive.features.audit.missing import LedgerReport, verify_ledger
from plansurvive.features.audit.report import AuditReport
from plansurvive.features.audit.report import audit as reported
from plansurvive.plans.step_state import named
from plansurvive.plans.text.safe_text import line

FAULTY = 1
"""Exit code of a record that is not whole."""


def audit(
    plan: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="Plan id or workflow id; without one: all plans.", autocompletion=complete_plan
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check hashes, signatures and the server's history; 1 if anything differs.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show who did what to a plan, and verify that record. Values appear as digests only."""
    if plan is None:
        return _ledger(as_json)
    found = session.run(lambda here: reported(here.client, plan, here.settings, verify=verify), worker=False)
    if as_json:
        output.show_json(found.model_dump(mode="json", exclude_defaults=True))
    else:
        output.show_rows("\n".join(row for each in (*found.others, found) for row in _rows(each, found)))
    return 0 if found.is_whole else FAULTY


def _ledger(as_json: bool) -> int:
    found = session.run(lambda here: verify_ledger(here.client, here.settings), worker=False)
    if as_json:
        output.show_json(found.model_dump(mode="json", exclude_defaults=True))
    else:
        output.show_rows("\n".join(_of_ledger(found)))
    return 0 if found.ok else FAULTY


def _of_ledger(found: LedgerReport) -> list[str]:
    """What is to be said of all plans."""
    text = f"{found.lines} lines: {found.plans} plans began, {found.records} records are here as they were kept"
    rows = [f"{text}, {found.on_server} starts without one are on the server; head {found.head or 'none'}"]
    rows += [_pruned(each) for each in found.pruned]
    rows += [f"{each.code}: {line(each.message)}" for each in found.problems]
    return [*rows, *(["Whole: the ledger holds, and no plan is missing."] if found.ok else [])]


def _pruned(found: Line) -> str:
    return line(f"{found.workflow_id} pruned at {found.time:%Y-%m-%d %H:%M:%S} by {found.by}: {found.text}")


def _rows(found: AuditReport, newest: AuditReport) -> list[str]:
    """One record; named where there are several."""
    named = [f"{found.workflow_id}, started as run {found.run_id}:"] if newest.others else []
    gap = [""] if found is not newest else []
    return [*named, *map(row_of, found.entries), *map(row_of, found.received), "", *_closing(found), *gap]


def row_of(entry: Act) -> str:
    """An entry on a line; what the record does not have yet has no number."""
    who = named(entry.by, entry.via, verified=entry.verified and entry.signed is not None)
    about = [
        f"step '{entry.step_id}'" if entry.step_id and not _is_of_worker(entry) else "",
        entry.tool,
        f"version {entry.version}" if entry.version else "",
        f"by {who}" if who else f"from {entry.client}" if entry.client else "",
        f"call {entry.digest[:12]}" if entry.digest else "",
        f"args {entry.args[:12]}" if entry.args else "",
        f"message {entry.message[:12]}" if entry.message and not entry.digest else "",
        f"-> {entry.outcome}" if entry.outcome else "",
        f"{entry.decide} by {' and '.join(map(repr, entry.rules)) or 'the policy'}" if entry.decide else "",
        f"policy {entry.policy[:12]}" if entry.policy else "",
        f"consent of {', '.join(each or 'somebody' for each in entry.consents)}" if entry.consents else "",
        f"{entry.code}: {entry.text}" if entry.text else entry.code,
        f"(entry {entry.entry})" if entry.entry else "",
        f"attempt {entry.attempt}" if entry.attempt > 1 else "",
        f"[{entry.linked}]" if entry.linked else "",
        "signed" if entry.signed else "",
    ]
    time = entry.time.strftime("%Y-%m-%d %H:%M:%S")
    number = entry.number if isinstance(entry, Entry) else "-"
    return line(f"{number:>4}  {time}  {entry.action:<16} {'  '.join(filter(None, about))}")


def _is_of_worker(entry: Act) -> bool:
    """Whether a plan made the call for itself, not for a step: what has the place of its id is Temporal's number."""
    return entry.action in ("activity started", "activity ended")


def _closing(found: AuditReport) -> list[str]:
    source = "the server's history" if found.source == "history" else "the record kept in the state directory"
    rows = [
        f"{len(found.entries)} {'entry' if len(found.entries) == 1 else 'entries'} from {source}; head {found.head}"
    ]
    if found.received:
        later = "are not part of the record" if found.ended else "become part of the record later"
        rows.append(f"Lines without a number are what the workflow says when it is asked; they {later}.")
    if found.linked:
        rows.append(f"Linked workflows, each with its own record: {', '.join(map(line, found.linked))}")
    rows += [_pruned(each) for each in found.pruned]
    if found.of_ledger is not None:
        rows += [f"{each.code}: {line(each.message)}" for each in found.of_ledger.problems]
    checked = found.verification
    if checked is None:
        return rows
    rows += [f"{each.code}: {line(each.message)}" for each in checked.problems]
    if checked.ok:
        compared = ", the kept record is the same as the server's history" if checked.compared else ""
        rows.append(f"Whole: the chain holds, {checked.signed} signatures are good{compared}.")
    if checked.unsigned:
        rows.append(f"{checked.unsigned} starts and decisions are not signed (PLANS_DECISIONS=signed asks for it).")
    return rows
