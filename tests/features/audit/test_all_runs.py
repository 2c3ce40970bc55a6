"""`plan audit`: the record of an id has all its runs, however the server let one follow another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ResetReapplyType
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest, ResetWorkflowExecutionRequest
from temporalio.client import Client

from plansurvive.features.audit import files
from plansurvive.features.audit.chain import chained, head, origin
from plansurvive.features.audit.entries import Act
from plansurvive.features.audit.history import read, read_alone, read_runs
from plansurvive.features.audit.keeper import Keeper
from plansurvive.features.audit.report import AuditReport, audit
from plansurvive.runtime.settings import Settings
from tests.client.cli.command import plan as command
from tests.features.audit.keeping import kept
from tests.kit.driving import Plans, Started, count, work
from tests.kit.waiting import until

GATE = work("go", requiresApproval=True)


async def reset(client: Client, plan: Started) -> None:
    """Reset the newest run to its first workflow task, before anybody decided."""
    events = (await plan.handle.fetch_history()).events
    tasks = [e.event_id for e in events if e.HasField("workflow_task_completed_event_attributes")]
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=plan.id),
            workflow_task_finish_event_id=tasks[0],
            reason="once more",
            reset_reapply_type=ResetReapplyType.RESET_REAPPLY_TYPE_NONE,
            request_id=f"reset of {plan.id}",
        )
    )


async def audited(client: Client, plan: Started, settings: Settings) -> AuditReport:
    return await audit(client, plan.id, settings, verify=True)


def codes(found: AuditReport) -> set[str]:
    return {problem.code for problem in found.verification.problems} if found.verification else set()


@pytest.mark.slow
async def test_what_is_done_after_a_reset_is_in_the_record_and_a_record_without_it_is_not_whole(
    plans: Plans, client: Client, settings: Settings
) -> None:
    plan = await plans.start([GATE])
    await plan.until_asked("go")
    await plan.approve("go", by="bob")
    await plan.ended()
    path = await kept(settings, client, plan)
    before = await audited(client, plan, settings)
    assert (codes(before), before.kept) == (set(), True)

    await reset(client, plan)
    await plan.until_asked("go")
    running = await audited(client, plan, settings)
    assert "AUDIT_CUT" in codes(running), "the kept record does not have the newest run"
    await plan.deny("go", by="mallory")
    await plan.ended()

    found = await audited(client, plan, settings)
    said = [(each.action, each.by, each.outcome) for each in found.entries]
    number = [each.action for each in found.entries].index("reset")
    assert found.entries[number].text == "once more"
    assert [each for each in said[:number] if each[0] == "approve"] == [("approve", "bob", "sent")]
    assert ("deny", "mallory", "sent") in said[number:]
    assert said[-1][0] == "ended"
    assert ("deny ended", "", "accepted") in said[number:]
    assert not any(each[0] == "started" for each in said[number:]), "the copied events are not told twice"

    assert "AUDIT_DIFFERS" in codes(found)
    await until(lambda: _is_longer(client, settings, path), "the keeper writes what was added")
    whole = await audited(client, plan, settings)
    assert (codes(whole), whole.verification and whole.verification.compared) == (set(), True)


async def _is_longer(client: Client, settings: Settings, path: Path) -> bool:
    await Keeper(client, settings).look()
    return '"action":"reset"' in path.read_text()


async def test_a_plan_that_was_started_again_has_a_record_for_each_start(
    plans: Plans, client: Client, settings: Settings, environ: dict[str, str]
) -> None:
    message = {"plan": {"steps": [GATE]}, "options": {"workspace": str(plans.workspace)}}
    name = f"plan-again-{plans.queue}"
    for by in ("ann", "bob"):
        handle = await client.start_workflow("PlanWorkflow", message, id=name, task_queue=plans.queue)
        plan = Started(client, name)
        await plan.until_asked("go")
        await plan.deny("go", by=by)
        if by == "ann":
            await handle.terminate("started again")
        else:
            await plan.ended()
    await until(lambda: _are_kept(client, settings, name), "both are kept")
    found = await audited(client, plan, settings)
    assert [{each.by for each in one.entries if each.action == "deny"} for one in (*found.others, found)] == [
        {"ann"}, {"bob"}
    ]  # fmt: skip
    assert found.is_whole
    printed = await command(environ, "audit", name, "--verify")
    assert (printed.code, printed.out.count("Whole: the chain holds")) == (0, 2)

    # A record that says it is of another run, with all hashes computed again, is no record of an earlier start.
    path = files.path_of(settings.state_dir, name, found.run_id)
    first, *entries, last = (json.loads(line) for line in path.read_text().splitlines())
    first["runId"] = "0" * 36
    acts = [Act.model_validate({k: v for k, v in each.items() if k not in ("number", "previous", "hash")})
            for each in entries if each["action"] != "deny"]  # fmt: skip
    chain = chained(acts, origin(name, first["runId"]))
    last |= {"sealed": len(chain), "head": head(chain, "")}
    rows = [json.dumps(first), *(each.model_dump_json(exclude_defaults=True) for each in chain), json.dumps(last)]
    path.write_text("\n".join(rows) + "\n")
    assert not (await audited(client, plan, settings)).is_whole
    assert (await command(environ, "audit", name, "--verify")).code == 1
    path.rename(files.path_of(settings.state_dir, name, first["runId"]))
    assert not (await audited(client, plan, settings)).is_whole


async def _are_kept(client: Client, settings: Settings, name: str) -> bool:
    await until(lambda: count(client, f"WorkflowId = '{name}' AND ExecutionStatus != 'Running'"), "it is listed")
    await Keeper(client, settings).look()
    return len(list(files.folder_of(settings.state_dir, name).glob("audit-*.jsonl"))) == 2


async def test_a_run_that_began_since_the_runs_were_listed_is_in_the_record(plans: Plans, client: Client) -> None:
    plan = await plans.start([GATE], {"historyLimit": 10})
    await plan.until_asked("go")
    first = (await plan.handle.describe()).run_id or ""

    async def has_continued() -> bool:
        for word in ("pause", "unpause"):
            await plan.signal(word)
        return (await plan.handle.describe()).run_id != first

    await until(has_continued, "it continues as new")
    await plan.deny("go", by="ann")
    await plan.ended()
    found = await read_runs(client, plan.id, first, [first])
    assert found.last == (await plan.handle.describe()).run_id
    assert [each.by for each in found.entries if each.action == "deny"] == ["ann"]
    assert found.ended


async def test_a_run_that_the_server_has_deleted_is_missed_unless_its_record_is_kept(
    plans: Plans, client: Client, settings: Settings
) -> None:
    plan = await plans.start([GATE])
    await plan.until_asked("go")
    first = (await plan.handle.describe()).run_id
    await reset(client, plan)
    await plan.until_asked("go")
    await plan.deny("go", by="ann")
    await plan.ended()
    assert (await audited(client, plan, settings)).is_whole
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(
            namespace=client.namespace, workflow_execution=WorkflowExecution(workflow_id=plan.id, run_id=first)
        )
    )

    async def is_missed() -> bool:
        return "AUDIT_CUT" in codes(await audited(client, plan, settings))

    await until(is_missed, "the run is gone, and missed")


async def test_a_run_that_is_the_only_one_is_read_alone_and_others_are_not(plans: Plans, client: Client) -> None:
    """Most plans have one run: what is kept of it is the same, and the server is asked for its history alone."""
    plan = await plans.start([GATE])
    await plan.until_asked("go")
    await plan.approve("go", by="bob")
    await plan.ended()
    first = (await plan.handle.describe()).run_id
    assert await read_alone(client, plan.id, first) == await read(client, plan.id)

    await reset(client, plan)
    await plan.until_asked("go")
    again = (await plan.handle.describe()).run_id
    await plan.deny("go", by="bob")
    await plan.ended()
    assert await read_alone(client, plan.id, again) is None

    long = await plans.start([work("a"), work("b", "a"), GATE], {"historyLimit": 10})
    await long.until_asked("go")
    runs = {(await long.handle.describe()).run_id}
    while len(runs) == 1:
        for word in ("pause", "unpause"):
            await long.signal(word)
        runs.add((await long.handle.describe()).run_id)
    await long.deny("go", by="bob")
    await long.ended()
    assert [await read_alone(client, long.id, each) for each in runs] == [None, None]
