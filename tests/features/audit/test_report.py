"""`plan audit`: what a real plan's record says, and that a kept record is found to be whole or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client

from plansurvive.client import runs
from plansurvive.client.runs import Choice
from plansurvive.features.audit import files
from plansurvive.features.audit.chain import chained, head, origin
from plansurvive.features.audit.commands import row_of
from plansurvive.features.audit.entries import Act, Entry
from plansurvive.features.audit.keeper import Keeper
from plansurvive.features.audit.report import AuditReport, Verification, audit
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import Settings
from tests.client.cli.command import plan as command
from tests.features.audit.keeping import kept
from tests.kit.driving import Plans, Started, work
from tests.kit.waiting import until

CANARY = "canary-51c9"


@pytest.fixture
def environ(environ: dict[str, str]) -> dict[str, str]:
    return environ | {"PLANS_DECISIONS": "signed"}


async def decided(plans: Plans) -> Started:
    """A plan of which one call was approved, one denied, and which continued as new on its way."""
    inner = [work("inner", args={"value": CANARY})]
    started = await plans.start(
        [
            work("go", requiresApproval=True, args={"value": CANARY}),
            work("stay", "go", requiresApproval=True),
            {"id": "child", "tool": "plan", "args": {"steps": inner}, "dependsOn": ["go"]},
        ],
        {"by": "ann", "historyLimit": 20},
    )
    await started.until_asked("go")
    view = await runs.show(plans.client, started.id)
    digest = view.pending[0].digest
    await runs.approve(plans.client, started.id, Choice(step_id="go", by="bob", digest=digest, comment=CANARY))
    await started.until_asked("stay")
    with pytest.raises(PlanError):
        await runs.deny(plans.client, started.id, Choice(step_id="stay", by="eve", digest="0" * 64))
    await runs.deny(plans.client, started.id, Choice(step_id="stay", by="cat"))
    await started.ended()
    return started


def checked(found: AuditReport) -> Verification:
    assert found.verification is not None
    return found.verification


def lines(found: AuditReport) -> list[tuple[str, str, str, str]]:
    return [(each.action, each.step_id, each.by, each.outcome) for each in found.entries]


async def test_a_tool_that_asked_first_has_not_failed(
    plans: Plans, client: Client, settings: Settings, workspace: Path
) -> None:
    (workspace / "old.md").write_text("old")
    step = {"id": "over", "tool": "write_file", "args": {"path": "old.md", "content": "new"}}
    started = await plans.start([step], {"workspace": str(workspace)})
    await started.until_asked("over")
    digest = (await runs.show(client, started.id)).pending[0].digest
    await runs.approve(client, started.id, Choice(step_id="over", by="bob", digest=digest))
    assert (await started.ended())["status"] == "completed"
    found = await audit(client, started.id, settings, verify=True)
    assert [each.outcome for each in found.entries if each.action == "step ended"] == ["asked first", "completed"]
    assert {each.code for each in found.entries if each.action == "step ended"} == {""}
    assert checked(found).ok


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_record_says_who_did_what_and_holds_after_the_history_is_gone(
    plans: Plans, client: Client, settings: Settings, environ: dict[str, str]
) -> None:
    started = await decided(plans)
    found = await audit(client, started.id, settings, verify=True)
    said = lines(found)
    for line in (
        ("started", "", "ann", ""), ("approve", "go", "bob", "accepted"), ("step started", "go", "", ""),
        ("step ended", "go", "", "completed"), ("deny", "stay", "cat", "accepted"), ("child started", "", "", ""),
        ("child ended", "", "", "completed"), ("ended", "", "", "failed"),
    ):  # fmt: skip
        assert line in said
    assert not any(by == "eve" for _, _, by, _ in said)  # refused, so it has not happened
    [approved] = [each for each in found.entries if each.action == "approve"]
    assert approved.digest
    assert approved.signed
    assert (checked(found).ok, checked(found).signed, checked(found).unsigned) == (True, 3, 0)
    assert CANARY not in found.model_dump_json()
    assert found.linked[0].startswith(started.id)

    path = await kept(settings, client, started)
    assert path.stat().st_mode & 0o077 == 0
    again = await audit(client, started.id, settings, verify=True)
    assert (again.kept, checked(again).ok, checked(again).compared) == (True, True, True)
    assert (await Keeper(client, settings).look()) == 0  # each is written once

    execution = WorkflowExecution(workflow_id=started.id)
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=execution)
    )
    await until(lambda: _is_gone(client, settings, started), "the history is gone")
    printed = await command(environ, "audit", started.id, "--verify", "--json")
    assert printed.code == 0
    assert [each["action"] for each in printed.json["entries"]] == [each.action for each in found.entries]

    original = path.read_text()
    for attack in ATTACKS:
        path.write_text(attack(original))
        ended = await command(environ, "audit", started.id, "--verify")
        assert ended.code != 0, attack.__name__
        assert "AUDIT_" in ended.out + ended.err


async def _is_gone(client: Client, settings: Settings, started: Started) -> bool:
    return (await audit(client, started.id, settings)).source == "record"


def without_a_line(text: str) -> str:
    rows = text.splitlines()
    return "\n".join([*rows[:3], *rows[4:]])


def with_another_name(text: str) -> str:
    return text.replace('"bob"', '"eve"')


def cut_off(text: str) -> str:
    return "\n".join(text.splitlines()[:-2])


def in_another_order(text: str) -> str:
    rows = text.splitlines()
    return "\n".join([*rows[:2], rows[3], rows[2], *rows[4:]])


def computed_again(text: str) -> str:
    """All hashes anew, as a careful forger would; only the seal, which needs the key, stays as it was."""
    first, *entries, last = (json.loads(each) for each in with_another_name(text).splitlines())
    start = origin(first["workflowId"], first["runId"])
    acts = [Entry.model_validate(each) for each in entries]
    chain = chained([_act(each) for each in acts], start)
    sealed = last | {"head": head(chain, start), "sealed": len(chain)}
    return "\n".join(
        [json.dumps(first), *(each.model_dump_json(exclude_defaults=True) for each in chain), json.dumps(sealed)]
    )


def without_a_signature(text: str) -> str:
    rows = computed_again(text).splitlines()
    return "\n".join([*rows[:-1], json.dumps(json.loads(rows[-1]) | {"signature": ""})])


def no_json(text: str) -> str:
    return "x" + text


def _act(entry: Entry) -> Act:
    return Act.model_validate(entry.model_dump(exclude={"number", "previous", "hash"}))


ATTACKS: tuple[Callable[[str], str], ...] = (
    without_a_line, with_another_name, cut_off, in_another_order, computed_again, without_a_signature, no_json,
)  # fmt: skip


async def test_a_record_says_who_terminated_a_plan_and_which_one_is_unknown(
    plans: Plans, client: Client, settings: Settings, environ: dict[str, str]
) -> None:
    started = await plans.start([work("a", requiresApproval=True)])
    await started.until_asked("a")
    assert (await audit(client, started.id, settings)).ended is False
    await started.handle.terminate("enough")
    await kept(settings, client, started)
    found = await audit(client, started.id, settings, verify=True)
    assert found.entries[-1].outcome == "terminated"
    assert found.entries[-1].client
    assert checked(found).ok
    assert (await command(environ, "audit", "no-such-plan")).code == 4


def test_a_row_names_a_step_where_there_is_one() -> None:
    time = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
    step = Act(time=time, action="step ended", step_id="go", tool="work", outcome="completed")
    own = Act(time=time, action="activity ended", step_id="2", tool="lock_workspace", outcome="completed")
    assert [row_of(each) for each in chained([step, own], "0" * 64)] == [
        "   1  2026-11-22 09:00:00  step ended       step 'go'  work  -> completed",
        "   2  2026-11-22 09:00:00  activity ended   lock_workspace  -> completed",
    ]


def test_an_id_that_leads_elsewhere_stays_in_its_place(tmp_path: Path) -> None:
    for name in ("plan-..", "plan-../../x", "plan-a/b", "plan-" + "y" * 300):
        assert files.path_of(tmp_path, name, "0123456789").parent.parent == tmp_path / "runs"
