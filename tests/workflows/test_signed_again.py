"""PLANS_DECISIONS=signed, once more: nothing that was signed counts twice, or for a later run of the plan.

The forger speaks plain Temporal: resets, terminates and starts workflows, and sends what the server's history holds.

| a signed plan | tests here, and elsewhere |
| --- | --- |
| reset | `a_decision_from_before_a_reset`, `..._not_used_before_a_reset`, `a_waiver_counts_for_one_run`, |
| | `a_plan_without_a_signed_start` |
| terminated and started again | `nothing_from_before_a_plan_was_terminated` |
| continued as new | `a_continued_run_that_is_reset`; test_signed `a_message_that_was_honoured` |
| scheduled | test_signed_schedules, all |
| resumed, rerun | `a_decision_about_a_plan_approves_nothing_in_the_run_that_continues_it` |
| all of it in the record | features/audit/test_all_runs `after_a_reset`, `started_again`, `deleted`; two here |
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ResetReapplyType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer

from plansurvive.client import decisions, runs
from plansurvive.client.decisions import Choice
from plansurvive.client.verbs import resume
from plansurvive.features.audit.report import audit
from plansurvive.features.signing.model import NONCE, REMEMBERED
from plansurvive.features.signing.signer import Signer, signed
from plansurvive.features.workflow_types import WORKFLOWS
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import private_key
from plansurvive.runtime.task_queues import Neighbours
from plansurvive.runtime.workflow_runner import runner_for
from tests.kit.driving import Plans, Started, refusals, step, terminated
from tests.kit.waiting import until
from tests.workflows.conftest import MakeWorker

pytestmark = [
    pytest.mark.modes("plain", "uncached"),  # events are looked for in the newest run
    pytest.mark.uses("signing"),
]
GATE = {"id": "gate", "tool": "work", "args": {"name": "gate"}, "requiresApproval": True}
HOLD = {"id": "hold", "tool": "ask", "args": {"question": "Go on?"}, "dependsOn": ["gate"]}
REAPPLY = {
    "nothing": ResetReapplyType.RESET_REAPPLY_TYPE_NONE,
    "messages": ResetReapplyType.RESET_REAPPLY_TYPE_ALL_ELIGIBLE,
}
"""What the server sends again to the run that a reset makes."""


@pytest.fixture
def owner(temporal_client: Client, settings: Settings) -> Client:
    """A client of the key's owner: as `runtime.connect` makes it with PLANS_DECISIONS=signed."""
    config = temporal_client.config()
    config["interceptors"] = [Signer(settings)]
    return Client(**config)


async def started(plans: Plans, owner: Client, steps: list[dict[str, Any]], **options: Any) -> Started:
    """A plan that the owner has started."""
    given = Options.model_validate({"workspace": str(plans.workspace), **plans.options, **options})
    made = await runs.start(owner, {"steps": steps}, options=given, plan_id=f"p-{plans.queue}", queue=plans.queue)
    return Started(plans.client, made.workflow_id)


async def approved(owner: Client, plan: Started, step_id: str = "gate") -> None:
    """The owner approves a step that asks."""
    await plan.until_asked(step_id)
    await decisions.decide(owner, plan.id, Choice(step_id=step_id, by="ann"), approved=True)


async def reset(plan: Started, event_id: int, reapply: str = "nothing") -> None:
    """Reset the newest run to the workflow task that ends with this event."""
    await plan.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=plan.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=plan.id),
            workflow_task_finish_event_id=event_id,
            reset_reapply_type=REAPPLY[reapply],
            request_id=f"{reapply} {event_id}",
        )
    )


async def newest(plan: Started) -> list[HistoryEvent]:
    """The events of the newest run."""
    return list((await plan.handle.fetch_history()).events)


def decision_of(events: list[HistoryEvent]) -> int:
    """Number of the event with which the plan took the decision."""
    return next(e.event_id for e in events if e.HasField("workflow_execution_update_accepted_event_attributes"))


def tasks_of(events: list[HistoryEvent]) -> list[int]:
    """Numbers of the events that end a workflow task, to which a run can be reset."""
    return [e.event_id for e in events if e.HasField("workflow_task_completed_event_attributes")]


async def sent(plan: Started, events: list[HistoryEvent]) -> dict[str, Any]:
    """The decision as the server's history has it, signature and all."""
    event = next(e for e in events if e.event_id == decision_of(events))
    payloads = event.workflow_execution_update_accepted_event_attributes.accepted_request.input.args.payloads
    [message] = await plan.client.data_converter.decode(list(payloads))
    found: dict[str, Any] = message
    return found


async def refused(plan: Started, message: dict[str, Any]) -> str:
    """The code with which a decision is refused."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await plan.handle.execute_update("decide", message)
    assert isinstance(caught.value.cause, ApplicationError)
    return str(caught.value.cause.type)


def calls(plans: Plans, name: str = "gate") -> int:
    """How often the step's command began."""
    return sum(line[:2] == ["start", name] for line in plans.ledger)


async def replays(plan: Started) -> None:
    """The history of the newest run, replayed as after a restart of its worker."""
    await Replayer(
        workflows=WORKFLOWS,
        data_converter=plan.client.data_converter,
        workflow_runner=runner_for(plan.client, Neighbours()),
    ).replay_workflow(await plan.handle.fetch_history())


@pytest.mark.parametrize("reapply", REAPPLY)
@pytest.mark.on_server("resets")
async def test_a_decision_from_before_a_reset_approves_nothing_after_it(
    idle: Plans, owner: Client, make_worker: MakeWorker, reapply: str
) -> None:
    async with make_worker(decisions="signed"):
        plan = await started(idle, owner, [GATE, HOLD])
        await approved(owner, plan)
        await plan.until_asked("hold")
        first = await newest(plan)
        message, decided = await sent(plan, first), decision_of(first)
        before = [number for number in tasks_of(first) if number < decided]
        # To the task before the decision, to the first one of all, and once more.
        for event_id in (before[-1], before[0], before[0]):
            await reset(plan, event_id, reapply)
            await plan.until_asked("gate")
            assert await refused(plan, message) == "BAD_SIGNATURE", event_id
            assert "awaiting" in step(await plan.view(), "gate")
            assert calls(idle) == 1
            await replays(plan)
        # Control: the owner decides again.
        await approved(owner, plan)
        await plan.until_asked("hold")
        assert calls(idle) == 2
        await plan.handle.terminate()


@pytest.mark.on_server("resets")
async def test_a_plan_without_a_signed_start_notices_a_reset_from_before_its_facts(
    idle: Plans, owner: Client, make_worker: MakeWorker
) -> None:
    """Until its facts are known, nothing tells that the run has signatures to verify."""
    async with make_worker(decisions="signed"):
        plan = await started(idle, idle.client, [GATE, HOLD])
        await approved(owner, plan)
        await plan.until_asked("hold")
        message = await sent(plan, await newest(plan))
        # To the task that asks for the facts, and to the one that gets them: one task, or two if they take a while.
        # The second reset is of the run that the first one made, whose events have other numbers.
        for which in (0, -1):
            events = await newest(plan)
            facts = next(e.event_id for e in events if e.HasField("marker_recorded_event_attributes"))
            event_id = [number for number in tasks_of(events) if number < facts][which]
            nonce = await (await plan.handle.describe()).memo_value(NONCE, "")
            await reset(plan, event_id)
            await plan.until_asked("gate")
            await plan.until_logged("warning", "the run was reset")
            assert await (await plan.handle.describe()).memo_value(NONCE, "") != nonce
            assert await refused(plan, message) == "BAD_SIGNATURE", which
            await replays(plan)
        assert calls(idle) == 1
        # Control: the owner decides again.
        await approved(owner, plan)
        await plan.until_asked("hold")
        assert calls(idle) == 2
        await terminated(plan.client, plan.id)


@pytest.mark.on_server("resets")
async def test_a_decision_that_was_not_used_before_a_reset_is_void_after_it(
    idle: Plans, owner: Client, make_worker: MakeWorker
) -> None:
    first = {"id": "first", "tool": "ask", "args": {"question": "Begin?"}}
    async with make_worker(decisions="signed"):
        plan = await started(idle, owner, [first, {**GATE, "dependsOn": ["first"]}, HOLD])
        await plan.until_asked("first")
        await decisions.decide(owner, plan.id, Choice(step_id="gate", by="ann"), approved=True)
        await runs.answer(owner, plan.id, "first", "yes", by="ann")
        await plan.until_asked("hold")
        events = await newest(plan)
        accepted = [e.event_id for e in events if e.HasField("workflow_execution_update_accepted_event_attributes")]
        between = [number for number in tasks_of(events) if accepted[0] < number < accepted[1]]
        assert between, "the decision and the answer came in tasks of their own"
        await reset(plan, next(n for n in tasks_of(events) if n > accepted[0]))
        view = await plan.until_logged("void", "before a reset")
        assert view["unsigned"] is True
        await runs.answer(owner, plan.id, "first", "yes", by="ann")
        await plan.until_asked("gate")
        assert calls(idle) == 1
        await replays(plan)
        await plan.handle.terminate()


@pytest.mark.on_server("resets")
async def test_a_continued_run_that_is_reset_keeps_no_decision_that_it_was_given(
    idle: Plans, owner: Client, make_worker: MakeWorker
) -> None:
    """Its argument brings decisions, and its first task would take them again: no callback tells of that reset."""
    first = {"id": "first", "tool": "ask", "args": {"question": "Begin?"}}
    async with make_worker(decisions="signed"):
        plan = await started(idle, owner, [first, {**GATE, "dependsOn": ["first"]}, HOLD], history_limit=10)
        await plan.until_asked("first")
        await decisions.decide(owner, plan.id, Choice(step_id="gate", by="ann"), approved=True)
        run_id = (await plan.handle.describe()).run_id

        async def has_continued() -> bool:
            for word in ("pause", "unpause"):
                await decisions.control(owner, plan.id, word)
            return (await plan.handle.describe()).run_id != run_id

        await until(has_continued, "the plan continues as new")
        await runs.answer(owner, plan.id, "first", "yes", by="ann")
        await plan.until_asked("hold")
        assert calls(idle) == 1
        histories = await plan.histories()
        continued = next(h for h in histories if decided_to_start(h.events))
        event_id = tasks_of(list(continued.events))[0]
        await plan.client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=plan.client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=plan.id, run_id=continued.run_id),
                workflow_task_finish_event_id=event_id,
                reset_reapply_type=REAPPLY["messages"],
                request_id="again",
            )
        )
        await plan.until_logged("void", "before a reset")
        if "awaiting" in step(await plan.view(), "first"):
            await runs.answer(owner, plan.id, "first", "yes", by="ann")
        await plan.until_asked("gate")
        assert calls(idle) == 1
        await replays(plan)
        await plan.handle.terminate()


def decided_to_start(events: Any) -> bool:
    """Whether a run continues another one and made the call of the gate."""
    return bool(events[0].workflow_execution_started_event_attributes.continued_execution_run_id) and any(
        e.activity_task_scheduled_event_attributes.activity_type.name == "work" for e in events
    )


@pytest.mark.on_server("resets")
async def test_a_waiver_counts_for_one_run_and_not_after_a_reset(
    idle: Plans, owner: Client, make_worker: MakeWorker
) -> None:
    async with make_worker(decisions="signed"):
        plan = await started(idle, owner, [{**GATE, "tool": "run_command", "requiresApproval": False,
                                            "args": {"command": "echo ran >> ran.txt"}}, HOLD])  # fmt: skip
        await plan.until_asked("hold")
        ran = Path(idle.workspace / "ran.txt")
        assert ran.read_text() == "ran\n"
        for event_id in (tasks_of(await newest(plan))[0], tasks_of(await newest(plan))[0]):
            await reset(plan, event_id)
            assert (await plan.until_asked("gate"))["unsigned"] is True
        assert ran.read_text() == "ran\n"
        await terminated(plan.client, plan.id)


@pytest.mark.on_server("replays its history")
async def test_nothing_from_before_a_plan_was_terminated_counts_when_it_is_started_again(
    idle: Plans, owner: Client, make_worker: MakeWorker, settings: Settings
) -> None:
    """The forger copies the owner's start from the history as well, within the minutes for which it counts."""
    waived = {"id": "waived", "tool": "work", "args": {"name": "waived"}, "requiresApproval": False}
    async with make_worker(decisions="signed"):
        plan = await started(idle, owner, [waived, GATE, HOLD])
        await approved(owner, plan)
        await plan.until_asked("hold")
        events = await newest(plan)
        message = await sent(plan, events)
        await terminated(plan.client, plan.id)
        payloads = events[0].workflow_execution_started_event_attributes.input.payloads
        [start] = await plan.client.data_converter.decode(list(payloads))
        await plan.client.start_workflow(
            "PlanWorkflow", start, id=plan.id, task_queue=idle.queue, execution_timeout=idle.ceiling
        )
        view = await plan.until_asked("gate")
        assert view["unsigned"] is True
        await plan.until_logged("warning", "it was started before")
        assert await refused(plan, message) == "BAD_SIGNATURE"
        assert "awaiting" in step(await plan.view(), "gate")
        assert calls(idle) == 1
        await replays(plan)
        # Control: the owner decides again.
        await approved(owner, plan)
        await plan.until_asked("hold")
        assert calls(idle) == 2
        await terminated(plan.client, plan.id)
        # And starts again: with a signature of its own it counts, under the same id and at once.
        anew = signed(private_key(settings), "start", plan.id, "", start)
        await plan.client.start_workflow(
            "PlanWorkflow", anew, id=plan.id, task_queue=idle.queue, execution_timeout=idle.ceiling
        )
        view = await plan.until_asked("gate")
        assert "unsigned" not in view
        await terminated(plan.client, plan.id)
        record = await audit(owner, plan.id, settings, verify=True)
        assert [len([each for each in one.entries if each.action == "approve"]) for one in (*record.others, record)]


@pytest.mark.parametrize("how", ["resume", "rerun"])
@pytest.mark.on_server("lists")
async def test_a_decision_about_a_plan_approves_nothing_in_the_run_that_continues_it(
    idle: Plans, owner: Client, make_worker: MakeWorker, settings: Settings, how: str
) -> None:
    async with make_worker(decisions="signed"):
        plan = await started(idle, owner, [GATE, HOLD])
        await approved(owner, plan)
        await plan.until_asked("hold")
        message = await sent(plan, await newest(plan))
        await resume.interrupt(owner, plan.id, "ann")
        await plan.ended()
        if how == "resume":
            made = await resume.resume(owner, plan.id, "ann")
            await Started(plan.client, made.workflow_id).until_asked("hold")
            assert calls(idle) == 1, "what was done is not done again"
            await resume.interrupt(owner, made.workflow_id, "ann")
            await Started(plan.client, made.workflow_id).ended()
            plan = Started(plan.client, made.workflow_id)
        made = await resume.rerun(owner, plan.id, start_at="gate", by="ann")
        later = Started(plan.client, made.workflow_id)
        await later.until_asked("gate")
        assert await refused(later, message) == "BAD_SIGNATURE"
        assert calls(idle) == 1
        await approved(owner, later)
        await later.until_asked("hold")
        assert calls(idle) == 2
        record = await audit(owner, later.id, settings, verify=True)
        assert plan.id in record.linked
        approvals = [(each.by, each.outcome) for each in record.entries if each.action == "approve"]
        assert approvals == [("ann", "accepted")], record.entries
        await terminated(plan.client, later.id)


@pytest.mark.slow
@pytest.mark.modes("plain")  # a run with hundreds of messages, replayed with each of them, outlasts its tasks
@pytest.mark.on_server("replays its history")
async def test_messages_count_once_also_when_there_are_more_than_a_run_remembers(
    idle: Plans, owner: Client, make_worker: MakeWorker, settings: Settings
) -> None:
    """The run takes another nonce then, which the memo shows; what is on its way meanwhile is not refused."""
    async with make_worker(decisions="signed"):
        plan = await started(idle, owner, [GATE, HOLD])
        await plan.until_asked("gate")
        before = (await plan.handle.describe()).run_id
        nonce = await (await plan.handle.describe()).memo_value(NONCE, "")
        for _ in range(REMEMBERED // 5 + 1):
            await asyncio.gather(*(decisions.control(owner, plan.id, "clear_session") for _ in range(5)))
        assert await (await plan.handle.describe()).memo_value(NONCE, "") != nonce
        await approved(owner, plan)
        view = await plan.until_asked("hold")
        assert (calls(idle), refusals(view)) == (1, [])
        message = await sent(plan, [e for e in await newest(plan) if is_decision(e)])
        assert await refused(plan, message) == "REPLAYED"
        assert (await plan.handle.describe()).run_id == before, "all of it in one run"
        await replays(plan)
        await terminated(plan.client, plan.id)
        found = (await audit(owner, plan.id, settings, verify=True)).verification
        assert found is not None
        assert found.problems == []


def is_decision(event: HistoryEvent) -> bool:
    """Whether it is the event with which a plan took a decision, not another message."""
    accepted = event.workflow_execution_update_accepted_event_attributes
    return accepted.accepted_request.input.name == "decide"
