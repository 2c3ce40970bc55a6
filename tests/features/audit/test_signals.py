"""What `plan audit` says became of raw signals: accepted, refused and why, void; through continue-as-new."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.audit import files, history
from plansurvive.features.audit.chain import FORM, chained, head, origin
from plansurvive.features.audit.entries import Act, Entry
from plansurvive.features.audit.report import AuditReport, audit
from plansurvive.features.audit.signals import between_workflows
from plansurvive.plans.receipts import KEPT
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.client.cli.command import plan as command
from tests.features.audit.keeping import kept
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import GO, Plans, work
from tests.kit.waiting import until
from tests.replay.signals import signals_continued
from tests.workflows.agents import Agents, call, says

CANARY = "canary-77d0"


def became(found: AuditReport) -> list[tuple[str, str, str, str, str]]:
    """Each signal and what became of it: action, step, who, outcome, code; of one that has no outcome, `sent`."""
    about: dict[int, list[Act]] = {}
    for each in [*found.entries, *found.received]:
        if each.entry:
            about.setdefault(each.entry, []).append(each)
    return [
        (sent.action, sent.step_id, sent.by, each.outcome, each.code)
        for sent in found.entries
        if sent.outcome == "sent"
        for each in about.get(sent.number, [sent])
    ]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_record_says_what_became_of_each_signal_through_continue_as_new(
    plans: Plans, client: Client, settings: Settings, environ: dict[str, str]
) -> None:
    started = await signals_continued(plans)
    assert len(await started.histories()) > 1
    found = await audit(client, started.id, settings, verify=True)
    assert became(found) == [
        ("edit", "", "eve", "refused", "UNKNOWN_SIGNAL"),
        ("approve", "nowhere", "eve", "refused", "UNKNOWN_STEP"),
        ("approve", "first", "eve", "refused", "STALE_VERSION"),
        ("deny", "first", "eve", "refused", "STALE_DIGEST"),
        ("pause", "", "ann", "accepted", ""),
        ("approve", "first", "ann", "accepted", ""),
        ("approve", "first", "ann", "void", "VOID"),
        ("unpause", "", "ann", "accepted", ""),
        ("approve", "first", "ann", "accepted", ""),
        ("unpause", "", "eve", "refused", "NOT_PAUSED"),
        ("deny", "second", "ann", "accepted", ""),
    ]
    assert "version 7" in next(each.text for each in found.entries if each.code == "STALE_VERSION")
    assert found.verification is not None
    assert found.verification.ok
    assert found.received == []
    await kept(settings, client, started)
    printed = await command(environ, "audit", started.id, "--verify")
    assert printed.code == 0, printed.err
    assert "STALE_VERSION: the decision is about version 7" in printed.out
    assert "the kept record is the same as the server's history" in printed.out


async def test_a_running_plan_says_what_became_of_signals_before_its_record_does(
    plans: Plans, client: Client, settings: Settings, environ: dict[str, str]
) -> None:
    started = await plans.start([work("a", requiresApproval=True)])
    await started.until_asked("a")
    early = await audit(client, started.id, settings)
    await started.approve("a", by="eve", digest="0" * 64)
    await started.signal("files_changed", {"paths": []})
    await started.until_logged("refused", "BAD_MESSAGE")
    found = await audit(client, started.id, settings)
    assert [each[3:] for each in became(found)] == [("refused", "STALE_DIGEST"), ("refused", "BAD_MESSAGE")]
    assert "-  " in (await command(environ, "audit", started.id)).out
    await started.deny("a")
    await started.ended()
    ended = await audit(client, started.id, settings, verify=True)
    for before in (early, found):  # nothing in front of it changes
        assert ended.entries[: len(before.entries)] == before.entries
    assert [each[3] for each in became(ended)] == ["refused", "refused", "accepted"]


async def test_signals_between_workflows_are_refused_without_being_counted(
    plans: Plans, client: Client, settings: Settings
) -> None:
    started = await plans.start([work("a", requiresApproval=True)])
    await started.until_asked("a")
    await started.approve("nowhere")
    for name in sorted(between_workflows()):
        await started.signal(name, {"nonsense": 1})
    await started.signal("news", {})
    await started.approve("a")
    await started.ended()
    found = await audit(client, started.id, settings)
    assert [(each[0], *each[3:]) for each in became(found)] == [
        ("approve", "refused", "UNKNOWN_STEP"), ("news", "refused", "UNKNOWN_SIGNAL"), ("approve", "accepted", ""),
    ]  # fmt: skip


async def test_a_sentence_that_may_quote_a_message_is_left_out(
    plans: Plans, client: Client, settings: Settings
) -> None:
    started = await plans.start([work("a", requiresApproval=True)])
    await started.until_asked("a")
    await started.signal("approve", CANARY)
    await started.approve("a", args={"name": "a", "seconds": CANARY})
    await started.until_logged("refused", "INVALID_ARGS")
    await started.approve("a")
    await started.ended()
    found = await audit(client, started.id, settings)
    assert [each[3:] for each in became(found)] == [
        ("refused", "BAD_MESSAGE"), ("refused", "INVALID_ARGS"), ("accepted", ""),
    ]  # fmt: skip
    assert CANARY not in found.model_dump_json()


@pytest.mark.slow
@pytest.mark.in_turn
async def test_more_refusals_than_are_kept_leave_the_oldest_signals_as_sent(
    plans: Plans, client: Client, settings: Settings
) -> None:
    started = await plans.start([work("a", requiresApproval=True)])
    await started.until_asked("a")
    for _ in range(KEPT + 5):
        await started.approve("nowhere")
    await started.approve("a")
    await started.ended()
    outcomes = [each[3] for each in became(await audit(client, started.id, settings))]
    assert outcomes == ["sent"] * 5 + ["refused"] * KEPT + ["accepted"]


async def test_a_plan_that_was_terminated_is_asked_what_became_of_its_last_signals(
    plans: Plans, client: Client, settings: Settings, environ: dict[str, str]
) -> None:
    started = await plans.start([work("a", requiresApproval=True)])
    await started.until_asked("a")
    await started.signal("pause", {"by": "ann"})
    await started.until(lambda view: view["status"] == "paused", "it is paused")
    await started.approve("a", by="eve", digest="0" * 64)
    await started.until_logged("refused", "STALE_DIGEST")
    await started.handle.terminate("enough")
    found = await audit(client, started.id, settings, verify=True)
    assert [each.outcome for each in found.entries if each.action in ("pause", "approve")] == ["sent", "sent"]
    assert [each[3:] for each in became(found)] == [("accepted", ""), ("refused", "STALE_DIGEST")]
    assert "they are not part of the record" in (await command(environ, "audit", started.id)).out


async def test_an_agent_that_has_ended_is_asked_what_became_of_its_last_signals(
    client: Client, settings: Settings, workspace: Path
) -> None:
    story = [says({"tool_calls": [call("work", name="a", until=GO)]}), says({"answer": "Done."})]
    with ScriptedLlm(Script.of(story)) as llm:
        flags = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with build(client, flags, load_tools([LEDGER_TOOLS]), indexed=True):
            agent = await Agents(Plans(client, settings.task_queue, workspace), llm).start("Work")
            await until((workspace / "ledger.txt").exists, "the call has begun")
            await agent.signal("pause", {"by": "ann"})
            await agent.signal("approve", {"stepId": "nowhere", "by": "eve"})
            await agent.signal("budget_answer", {"nonsense": 1})
            await agent.signal("unpause", {"by": "ann"})
            (workspace / GO).touch()
            await agent.ended()
            found = await audit(client, agent.id, settings)
    assert [(each[0], *each[3:]) for each in became(found)] == [
        ("pause", "accepted", ""), ("approve", "refused", "UNKNOWN_STEP"), ("unpause", "accepted", ""),
    ]  # fmt: skip


async def test_a_plan_that_has_ended_takes_no_signal(plans: Plans, client: Client, settings: Settings) -> None:
    """The server refuses it, so there is nothing to record."""
    started = await plans.start([work("a")])
    await started.ended()
    before = await audit(client, started.id, settings)
    with pytest.raises(RPCError) as refused:
        await started.signal("pause", {"by": "eve"})
    assert refused.value.status is RPCStatusCode.NOT_FOUND
    assert (await audit(client, started.id, settings)).head == before.head


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_record_of_a_newer_form_is_not_taken_for_one_of_this_version(
    plans: Plans, client: Client, settings: Settings, environ: dict[str, str]
) -> None:
    started = await signals_continued(plans)
    path = files.write(settings, await history.read(client, started.id))
    found = await audit(client, started.id, settings, verify=True)
    assert found.verification is not None
    assert (found.verification.ok, found.verification.compared) == (True, True)
    path.write_text(path.read_text().replace(f'{{"audit": {FORM},', f'{{"audit": {FORM + 1},'))
    assert "AUDIT_UNREADABLE" in (await command(environ, "audit", started.id, "--verify")).err


def test_a_chain_of_this_form_keeps_its_hashes() -> None:
    """Records are verified by later versions: other hashes need another FORM."""
    start = origin("plan-a", "run")
    entry = chained([Act.model_validate({"time": "2026-11-22T12:00:00Z", "action": "approve", "by": "ann"})], start)
    assert start == "2bd22266581b0dc83e9ac58086d1aefe1ee99189eccb8065b02d3c73a705351c"
    assert head(entry, start) == "bb6b42c03346064aaf2b6392ec10b71e7a1e36bdc406cbd2ab01c993f284f09e"
    assert isinstance(entry[0], Entry)
