"""Reads the audit record of a plan and says whether it is whole.

While the server has the plan's history, the record is made from it; a record that is kept in the state directory is
compared with it. Afterwards the kept one is all there is: its chain, its seal and the signatures of its decisions say
whether anybody changed it.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from pydantic import Field
from temporalio.client import Client, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.errors import PlanNotFound
from plansurvive.client.ids import plan_id, workflow_id
from plansurvive.client.rpc import translated
from plansurvive.features.audit import files, history, ledger
from plansurvive.features.audit.chain import broken, differs, forged, head
from plansurvive.features.audit.consent import unproven
from plansurvive.features.audit.entries import Act, Entry
from plansurvive.features.audit.ledger import Line
from plansurvive.features.audit.missing import LedgerReport, public_key, verify_ledger
from plansurvive.features.audit.outcomes import outcomes, read
from plansurvive.plans.model import Problem, Value
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import KEY

ANSWER_TIMEOUT = timedelta(seconds=5)
"""For a worker to say what became of signals."""


class Verification(Value):
    """What `--verify` found."""

    ok: bool
    problems: list[Problem] = Field(default_factory=list)
    signed: int = Field(description="Entries whose signature was checked.")
    unsigned: int = Field(description="Decisions that carry none, as the worker asks for none.")
    compared: bool = Field(description="Whether a kept record was compared with the server's history.")


class AuditReport(Value):
    """The audit record of one plan or agent."""

    workflow_id: str
    run_id: str = Field(description="First run of the workflow.")
    source: str = Field(description="`history`: of the server; `record`: kept in the state directory.")
    ended: bool
    kept: bool = Field(description="Whether the state directory holds the record.")
    head: str = Field(description="Hash of the last entry: it stands for the whole record.")
    linked: list[str] = Field(description="Workflows of children, parent and earlier runs, with records of their own.")
    last: datetime | None = Field(default=None, description="Time of the last entry.")
    entries: list[Entry]
    policies: dict[str, str] = Field(
        default_factory=dict, description="Text of each policy.toml that answered, by its SHA-256."
    )
    received: list[Act] = Field(
        default_factory=list,
        description="What became of signals by the word of the workflow, where history does not say it (yet).",
    )
    verification: Verification | None = None
    others: list[AuditReport] = Field(
        default_factory=list, description="Records of earlier starts of the id, and of undos of the plan."
    )

    pruned: list[Line] = Field(default_factory=list, description="What `plan prune` removed of it, and who did.")
    of_ledger: LedgerReport | None = Field(
        default=None, description="With `--verify`: what the ledger of the state directory says of it."
    )

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong with it and the others, as far as they were verified."""
        if self.of_ledger is not None and not self.of_ledger.ok:
            return False
        return all(each.verification is None or each.verification.ok for each in (self, *self.others))


DECIDED = frozenset((
    "approve", "override", "deny", "withdraw", "answer", "begin", "unpause", "edit", "regenerate", "event", "started",
))  # fmt: skip
"""Actions that are signed where the worker asks for signatures."""


async def audit(client: Client, plan: str, settings: Settings, *, verify: bool = False) -> AuditReport:
    """The audit record of a plan or agent, oldest entry first; with `verify`, whether it is whole.

    An id that was started more than once has a record for each start: the newest one, and in `others` the rest, with
    those of the plan's undos. `settings`: whose state directory keeps records and holds the key of signatures. Raises
    PlanNotFound if neither the server nor the state directory has anything, NotConnected, BadRecord if a kept file is
    no record.
    """
    name = workflow_id(plan)
    found = await _reports(client, name, settings, verify=verify)
    lines = [each for each in await asyncio.to_thread(ledger.read, settings.state_dir) if each is not None]
    lines = [each for each in lines if each.workflow_id == name]
    if not found:
        text = f"neither the server nor {settings.state_dir} has a record of plan '{plan}'"
        if not lines:
            raise PlanNotFound(f"{text}; `plan list` shows the plans")
        last = lines[-1]
        what = f"{last.text} pruned by {last.by}" if last.action == "pruned" else "it is missing"
        raise PlanNotFound(f"{text}; it began at {lines[0].time:%Y-%m-%d %H:%M:%S}: {what}")
    undone = await _reports(client, f"undo-{plan_id(name)}", settings, verify=verify)
    whole = await verify_ledger(client, settings, name) if verify else None
    pruned = [each for each in lines if each.action == "pruned"]
    return found[-1].model_copy(update={"others": [*found[:-1], *undone], "pruned": pruned, "of_ledger": whole})


async def _reports(client: Client, name: str, settings: Settings, *, verify: bool) -> list[AuditReport]:
    """The records of a workflow id, one for each start, oldest first: of the server, else those that are kept."""
    kept = {each.record.run_id: each for each in files.read(settings.state_dir, name)}
    real = dict[str, history.Record]()
    try:
        for first, runs in (await history.runs_of(client, name)).items():
            real[first] = await history.read_runs(client, name, first, runs)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise translated(error, name) from error
    found = list[AuditReport]()
    records = {first: real.get(first) or kept[first].record for first in {*kept, *real}}
    for first in sorted(records, key=lambda each: records[each].began):
        record, newest, stored = records[first], real.get(first), kept.get(first)
        if newest and stored and newest.lacks and newest.last == stored.record.last:
            newest, record = None, stored.record  # the server has deleted earlier runs: nothing to compare
        found.append(await _report(client, settings, record, newest, stored, verify=verify))
    return found


async def _report(
    client: Client, settings: Settings, record: history.Record, real: history.Record | None, kept: files.Stored | None,
    *, verify: bool,
) -> AuditReport:  # fmt: skip
    return AuditReport(
        workflow_id=record.workflow_id,
        run_id=record.run_id,
        source="history" if real else "record",
        ended=record.ended,
        kept=kept is not None,
        head=head(record.entries, record.origin),
        linked=list(dict.fromkeys(each.linked for each in record.entries if each.linked)),
        last=record.entries[-1].time if record.entries else None,
        entries=record.entries,
        policies=dict(kept.policies) if kept else files.policies_of(settings.state_dir, record.entries),
        received=await _received(client, record),
        verification=_verified(settings, record, real, kept) if verify else None,
    )


async def _received(client: Client, record: history.Record) -> list[Act]:
    """What became of the signals that history says nothing of; nothing if no worker answers.

    Of a plan that runs, was terminated or has been ended by the server, and of an agent's last run: a worker plays
    their history through to answer.
    """
    if not record.sent:
        return []
    handle = client.get_workflow_handle(record.workflow_id, run_id=record.last)
    try:
        found = read(await handle.query("receipts", rpc_timeout=ANSWER_TIMEOUT))
    except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError):  # also a worker of an older version
        return []
    return outcomes(found, record.sent, record.entries[-1].time) if found else []


def _verified(
    settings: Settings, record: history.Record, real: history.Record | None, kept: files.Stored | None
) -> Verification:
    key, found = public_key(settings), broken(record.entries, record.origin)
    signed = [each for each in record.entries if each.signed is not None]
    if kept is not None:
        found = files.problems_of(kept, key)
    if kept is not None and real is not None:
        found += differs(kept.record.entries, real.entries)
        if kept.record.last != real.last:
            text = f"the kept record ends in run {kept.record.last or '?'}, the plan in run {real.last}"
            found.append(Problem(code="AUDIT_CUT", message=text))
    if real is not None and real.lacks:
        text = f"the server no longer has run {', '.join(real.lacks)}, and no whole record is kept"
        found.append(Problem(code="AUDIT_CUT", message=text))
    if kept is None and key:
        found += forged(record.entries, record.workflow_id, key)
    elif kept is None and signed:
        text = f"{len(signed)} signatures cannot be checked: {settings.state_dir / KEY} does not exist here"
        found.append(Problem(code="AUDIT_NO_KEY", message=text))
    if kept is None:
        found += unproven(record.entries, files.policies_of(settings.state_dir, record.entries))
    unsigned = sum(1 for each in record.entries if each.signed is None and each.action in DECIDED)
    return Verification(
        ok=not found, problems=found, signed=len(signed), unsigned=unsigned, compared=bool(kept and real)
    )
