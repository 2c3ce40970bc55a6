"""`plan audit --verify` without an id: one chain over all plans of a state directory notices what is missing."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.features.audit.ledger import FILE, Ledger
from plansurvive.features.audit.missing import LedgerReport, verify_ledger
from plansurvive.features.audit.report import audit
from plansurvive.features.upkeep.prune import prune
from plansurvive.runtime.settings import Settings
from tests.client.cli.command import plan as command
from tests.features.audit.keeping import kept
from tests.kit.driving import Plans, Started, work
from tests.kit.waiting import until


async def deleted(client: Client, plan: Started) -> None:
    """The server forgets a plan, as anybody at its port can make it."""
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(
            namespace=client.namespace, workflow_execution=WorkflowExecution(workflow_id=plan.id)
        )
    )

    async def gone() -> bool:
        try:
            await plan.handle.describe()
        except RPCError:
            return True
        return False

    await until(gone, "it is deleted")


async def ended(plans: Plans) -> Started:
    plan = await plans.start([work("go")])
    await plan.ended()
    return plan


def codes(found: LedgerReport) -> list[str]:
    return [each.code for each in found.problems]


async def test_a_plan_is_missing_that_neither_the_server_nor_the_directory_has(
    plans: Plans, client: Client, settings: Settings
) -> None:
    lost, running = await ended(plans), await plans.start([work("go", requiresApproval=True)])
    await running.until_asked("go")
    assert (await verify_ledger(client, settings)).ok
    await deleted(client, lost)  # before a worker kept its record
    record = await ended(plans)
    path = await kept(settings, client, record)
    await deleted(client, record)
    found = await verify_ledger(client, settings)
    assert codes(found) == ["AUDIT_MISSING"]
    assert f"{lost.id} began at" in found.problems[0].message
    assert (found.plans, found.on_server, found.records) == (3, 1, 1)
    # A kept record that is taken away, or exchanged, is noticed as well
    whole = path.read_bytes()
    path.unlink()
    assert codes(await verify_ledger(client, settings, record.id)) == ["AUDIT_MISSING", "AUDIT_MISSING"]
    path.write_bytes(b"\n".join([*whole.splitlines()[:-2], whole.splitlines()[-1], b""]))
    assert "AUDIT_CHANGED" in codes(await verify_ledger(client, settings, record.id))
    path.write_bytes(whole)
    assert (await verify_ledger(client, settings, record.id)).ok  # control
    said = await command(_environ(client, settings), "audit", "--verify")
    assert (said.code, "AUDIT_MISSING" in said.out, record.id in said.out) == (1, True, False)
    one = await command(_environ(client, settings), "audit", lost.id)
    assert one.code == 4
    assert "it is missing" in one.err
    await running.handle.terminate()


async def test_prune_is_in_the_record_of_the_plan_with_who_did_it(
    plans: Plans, client: Client, settings: Settings
) -> None:
    plan = await ended(plans)
    path = await kept(settings, client, plan)
    await deleted(client, plan)
    for file in path.parent.glob("*"):
        os.utime(file, (time.time() - 90_000,) * 2)
    day = timedelta(days=1)
    await prune(client, settings, records=day, dry_run=True)
    assert (await audit(client, plan.id, settings)).pruned == []
    await prune(client, settings, records=day, dry_run=False)
    found = await audit(client, plan.id, settings, verify=True)
    assert [each.text for each in found.pruned] == ["SUMMARY.md"]
    assert "@" in found.pruned[0].by
    assert found.is_whole
    os.utime(path, (time.time() - 90_000,) * 2)
    await prune(client, settings, records=day, dry_run=False, audit=True)
    whole = await verify_ledger(client, settings, plan.id)
    assert whole.ok
    assert path.name in whole.pruned[-1].text
    said = await command(_environ(client, settings), "audit", plan.id)
    assert f"{path.name} pruned by {whole.pruned[-1].by}" in said.err


async def test_lines_that_are_changed_taken_out_or_signed_by_another_key_are_found(
    settings: Settings, client: Client, tmp_path: Path
) -> None:
    mine = Ledger.of(settings)
    for number in range(3):
        mine.pruned(f"plan-{number}", "SUMMARY.md")
    path = settings.state_dir / FILE
    whole = path.read_bytes()
    lines = whole.splitlines()
    changed = json.loads(lines[1]) | {"by": "nobody"}
    other = Ledger.of(settings.with_flags(state_dir=tmp_path / "other"))
    other.path = tmp_path / "copy.jsonl"
    other.path.write_bytes(b"\n".join(lines[:2]) + b"\n")
    other.pruned("plan-2", "SUMMARY.md")
    wrong = {
        "AUDIT_CHANGED": [lines[0], json.dumps(changed).encode(), lines[2]],
        "AUDIT_BROKEN": [lines[0], lines[2]],
        "AUDIT_SIGNATURE": other.path.read_bytes().splitlines(),
    }
    for code, forged in wrong.items():
        path.write_bytes(b"\n".join(forged) + b"\n")
        assert code in codes(await verify_ledger(client, settings)), code
    path.write_bytes(whole + lines[2][:50])  # a crash cut off a line while it was written
    mine.pruned("plan-4", "SUMMARY.md")
    found = await verify_ledger(client, settings)
    assert (found.ok, found.lines) == (True, 4)


def _environ(client: Client, settings: Settings) -> dict[str, str]:
    return {
        "HOME": str(settings.state_dir), "PLANS_STATE_DIR": str(settings.state_dir), "PATH": os.environ["PATH"],
        "TEMPORAL_ADDRESS": client.service_client.config.target_host, "PLANS_TASK_QUEUE": settings.task_queue,
    }  # fmt: skip
