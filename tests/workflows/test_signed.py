"""PLANS_DECISIONS=signed: what somebody sends who has the port of the server, but not the key, counts for nothing.

The forger speaks plain Temporal: raw starts, signals and updates. Every attack has its control: with `open`, or with
the key, the same is honoured.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from plansurvive.client import decisions, runs
from plansurvive.client.decisions import Choice
from plansurvive.features.signing.model import NONCE, SIGNED_MESSAGES
from plansurvive.features.signing.signer import Signer, signed
from plansurvive.plans.editing.edits import SetField
from plansurvive.plans.run import Options
from plansurvive.plans.signature import FIELD
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import private_key
from tests.kit.driving import WAITS, Plans, Started, count, refusals, step, terminated, work
from tests.kit.waiting import until
from tests.workflows.conftest import MakeWorker
from tests.workflows.failing import stuck

pytestmark = pytest.mark.uses("signing")

WAITING = {"id": "gate", "tool": "create_directory", "args": {"path": "made"}, "requiresApproval": True}
WAIVED = {"id": "gate", "tool": "delete_file", "args": {"path": "kept"}, "requiresApproval": False}


@pytest.fixture
def owner(temporal_client: Client, settings: Settings) -> Client:
    """A client of the key's owner: as `runtime.connect` makes it with PLANS_DECISIONS=signed."""
    config = temporal_client.config()
    config["interceptors"] = [Signer(settings)]
    return Client(**config)


async def waiting(plans: Plans, owner: Client, queue: str) -> Started:
    """A plan, started by the owner, whose step awaits approval."""
    started = await runs.start(
        owner, {"steps": [WAITING]}, options=Options(workspace=str(plans.workspace)), plan_id=f"p-{queue}", queue=queue
    )
    plan = Started(plans.client, started.workflow_id)
    await plan.until_asked("gate")
    return plan


async def refused(plan: Started, name: str, message: dict[str, Any]) -> str:
    """The code with which an update is refused."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await plan.handle.execute_update(name, message)
    assert isinstance(caught.value.cause, ApplicationError)
    return str(caught.value.cause.type)


DECISION = {"stepId": "gate", "approved": True}


async def test_an_unsigned_decision_counts_for_nothing_and_is_told(
    idle: Plans, owner: Client, make_worker: MakeWorker, queue: str
) -> None:
    async with make_worker(decisions="signed"):
        plan = await waiting(idle, owner, queue)
        await plan.approve("gate", by="the boss")
        view = await plan.until_logged("refused", "UNSIGNED")
        assert step(view, "gate")["awaiting"] == "approval"
        assert await refused(plan, "decide", DECISION) == "UNSIGNED"
        edit = {"edits": [{"op": "set", "stepId": "gate", "path": "requiresApproval", "value": False}]}
        assert await refused(plan, "edit", edit) == "UNSIGNED"
        assert await refused(plan, "regenerate", {"feedback": "run it"}) == "UNSIGNED"
        await plan.signal("pause")
        for action in ("unpause", "clear_session"):
            assert await refused(plan, "control", {"action": action}) == "UNSIGNED"
        assert "awaiting" in step(await plan.view(), "gate")
        assert not (idle.workspace / "made").exists()
        # Control: the owner's messages, by update and by signal.
        assert await decisions.control(owner, plan.id, "clear_session", "ann") == "session cleared by ann"
        said = await decisions.control(owner, plan.id, "unpause", "ann@example.org", "web", verified=True)
        assert said == "unpaused by ann@example.org (web, verified)"
        # A pause needs no signature, so a verified name in one is a claim.
        said = await decisions.control(owner, plan.id, "pause", "the boss", "web", verified=True)
        assert said == "paused by the boss (web)"
        await decisions.control(owner, plan.id, "unpause")
        choice = Choice(step_id="gate", by="ann@example.org", via="web", verified=True)
        said = await runs.approve(owner, plan.id, choice)
        assert said == "step 'gate' approved by ann@example.org (web, verified)"
        assert (await plan.ended())["status"] == "completed"


@pytest.mark.on_server("lists")
async def test_the_end_of_a_pause_reaches_child_plans_with_a_signature_for_each(
    idle: Plans, owner: Client, make_worker: MakeWorker, queue: str
) -> None:
    deep = {"id": "deep", "tool": "plan", "args": {"steps": [work("last", args=WAITS), work("end", "last")]}}
    async with make_worker(decisions="signed"):
        steps = [{"id": "sub", "tool": "plan", "args": {"steps": [deep]}}]
        options = Options(workspace=str(idle.workspace))
        started = await runs.start(owner, {"steps": steps}, options=options, plan_id=f"p-{queue}", queue=queue)
        plan, child = Started(idle.client, started.workflow_id), Started(idle.client, f"plan-p-{queue}-sub-deep")
        await child.until_status("last", "running")
        await runs.pause(owner, plan.id)
        await child.until(lambda view: view["status"] == "paused", "the pause has reached it")
        idle.go()
        await child.until_status("last", "completed")
        await child.signal("unpause", {"above": True})
        await child.until_logged("refused", "UNSIGNED")
        await until(lambda: count(owner, f"WorkflowId = '{child.id}' AND ExecutionStatus = 'Running'"), "it is listed")
        assert await runs.unpause(owner, plan.id, "ann") == "unpaused by ann"
        assert (await plan.ended())["status"] == "completed"


@pytest.mark.uses("children", "waiting")
async def test_an_event_is_not_passed_on_to_a_child_plan_where_its_signature_would_be_for_another_plan(
    idle: Plans, owner: Client, make_worker: MakeWorker, queue: str
) -> None:
    wait = {"id": "wait", "tool": "wait_for", "args": {"event": "go"}}
    top = {"id": "top", "tool": "plan", "args": {"steps": [wait]}}
    async with make_worker(decisions="signed"):
        started = await runs.start(
            owner, {"steps": [top]}, options=Options(workspace=str(idle.workspace)), plan_id=f"p-{queue}", queue=queue
        )
        plan, child = (Started(idle.client, f"{started.workflow_id}{more}") for more in ("", "-top"))
        await child.until_asked("wait")
        forged = {"stepId": "top", "child": f"p-{queue}-top", "wants": {"go": 0}}
        await plan.signal("events_wanted", forged)
        await plan.until_logged("refused", "UNSIGNED events_wanted")
        await child.signal("events_passed", {"events": [{"number": 1, "name": "go", "time": "2026-01-01T00:00:00Z"}]})
        await child.until_logged("refused", "UNSIGNED events_passed")
        assert await runs.event(owner, plan.id, "go") == "event 'go' kept for steps that will wait for it"
        assert step(await child.view(), "wait")["awaiting"] == "event"
        # Control: the owner's event counts where it is sent.
        assert await runs.event(owner, child.id, "go") == "event 'go' received by wait"
        assert (await plan.ended())["status"] == "completed"


async def test_with_open_decisions_the_same_signal_is_honoured(
    idle: Plans, owner: Client, make_worker: MakeWorker, queue: str
) -> None:
    async with make_worker():
        plan = await waiting(idle, owner, queue)
        await plan.approve("gate", by="the boss", via="web", verified=True)
        view = await plan.ended()
        assert view["status"] == "completed"
        # Anybody could claim to be verified.
        assert (step(view, "gate")["decision"].get("via"), step(view, "gate")["decision"].get("verified")) == (
            "web",
            None,
        )


Forge = Callable[[Settings, str, str], dict[str, Any]]
"""What a forger makes: of the settings, the workflow's id and its nonce."""
FORGED: dict[str, Forge] = {
    "another key": lambda _, name, run: signed(Ed25519PrivateKey.generate(), "decide", name, run, DECISION),
    "another plan": lambda own, _, run: signed(private_key(own), "decide", "plan-other", run, DECISION),
    "another run": lambda own, name, _: signed(private_key(own), "decide", name, "0" * 8, DECISION),
    "another kind": lambda own, name, run: signed(private_key(own), "edit", name, run, DECISION),
    "another step": lambda own, name, run: {
        **signed(private_key(own), "decide", name, run, {**DECISION, "stepId": "x"}), **DECISION
    },
    "a denial": lambda own, name, run: {
        **signed(private_key(own), "decide", name, run, {**DECISION, "approved": False}), **DECISION
    },
    "another digest": lambda own, name, run: {
        **signed(private_key(own), "decide", name, run, {**DECISION, "digest": "0" * 64}), "digest": "1" * 64
    },
    "more said": lambda own, name, run: {
        **signed(private_key(own), "decide", name, run, DECISION), "remember": True
    },
}  # fmt: skip


@pytest.mark.modes("plain")
async def test_a_signature_of_something_else_counts_for_nothing(
    idle: Plans, owner: Client, settings: Settings, make_worker: MakeWorker, queue: str
) -> None:
    async with make_worker(decisions="signed"):
        plan = await waiting(idle, owner, queue)
        run = str(await (await plan.handle.describe()).memo_value(NONCE))
        for name, forge in FORGED.items():
            message = forge(settings, plan.id, run)
            assert await refused(plan, "decide", message) == "BAD_SIGNATURE", name
        shapes: list[Any] = [None, "x", 5, {}, {"id": "x"}, {"id": "0" * 32, "time": 0, "value": "0" * 128}]
        for shape in shapes:
            code = await refused(plan, "decide", {**DECISION, FIELD: shape})
            assert code in ("BAD_MESSAGE", "UNSIGNED", "BAD_SIGNATURE"), shape
        # Control: the real one.
        await plan.handle.execute_update("decide", signed(private_key(settings), "decide", plan.id, run, DECISION))
        assert (await plan.ended())["status"] == "completed"


@pytest.mark.crosses_runs
async def test_a_message_that_was_honoured_is_refused_when_it_is_sent_again(
    idle: Plans, owner: Client, settings: Settings, make_worker: MakeWorker, queue: str
) -> None:
    async with make_worker(decisions="signed"):
        plan = await waiting(idle, owner, queue)
        run = str(await (await plan.handle.describe()).memo_value(NONCE))
        message = {"edits": [{"op": "set", "stepId": "gate", "path": "args.path", "value": "made-2"}]}
        edit = signed(private_key(settings), "edit", plan.id, run, message)
        await plan.handle.execute_update("edit", edit)
        await runs.edit(owner, plan.id, [SetField(op="set", step_id="gate", path="args.path", value="made-3")])
        assert await refused(plan, "edit", edit) == "REPLAYED"
        assert step(await plan.view(), "gate")["args"] == {"path": "made-3"}
        await plan.handle.terminate()


@pytest.mark.parametrize(
    ("name", "message"),
    [("clear_session", {}), ("event", {"name": "paid", "data": 1}), ("deny", {"stepId": "gate"})],
)
async def test_a_signal_that_was_honoured_is_refused_when_it_is_sent_again(
    idle: Plans, owner: Client, settings: Settings, make_worker: MakeWorker, queue: str, name: str,
    message: dict[str, Any],
) -> None:  # fmt: skip
    async with make_worker(decisions="signed"):
        plan = await waiting(idle, owner, queue)
        nonce = str(await (await plan.handle.describe()).memo_value(NONCE))
        kind = SIGNED_MESSAGES[name]
        await plan.signal("pause")  # it stays open, whatever the signal decides
        sent = signed(private_key(settings), kind, plan.id, nonce, message, name)
        for _ in range(2):
            await plan.signal(name, sent)
        view = await plan.until(refusals, "a signal is refused")
        assert [entry["code"] for entry in view["log"] if entry["kind"] == "refused"] == ["REPLAYED"]
        await plan.handle.terminate()


@pytest.mark.modes("plain", "uncached")
async def test_an_unsigned_decision_that_the_first_task_of_a_continued_run_brings_is_refused(
    idle: Plans, owner: Client, make_worker: MakeWorker, queue: str
) -> None:
    """The SDK hands it to the run before `run` is called, and the run knows its rule by then."""
    options, is_stuck = Options(workspace=str(idle.workspace), history_limit=10), True
    async with make_worker(client=stuck(idle.client, lambda: is_stuck), decisions="signed"):
        made = await runs.start(owner, {"steps": [WAITING]}, options=options, plan_id=f"p-{queue}", queue=queue)
        plan = Started(idle.client, made.workflow_id)
        await plan.until_asked("gate")

        async def has_continued() -> bool:
            await plan.approve("gate", by="the boss")
            runs_so_far = [history.events for history in await plan.histories()]
            return any(is_continued(events) and has(events, "workflow_task_failed") for events in runs_so_far)

        await until(has_continued, "a run continues, and its first task fails")
        await plan.approve("gate", by="the boss")
        is_stuck = False

        async def has_begun() -> bool:
            return any(begins_with_signal(history.events) for history in await plan.histories())

        await until(has_begun, "a continued run begins with a decision")
        view = await plan.view()
        assert "awaiting" in step(view, "gate")
        assert {entry["code"] for entry in view["log"] if entry["kind"] == "refused"} == {"UNSIGNED"}
        assert not (idle.workspace / "made").exists()
        # Control: the owner's decision.
        await runs.approve(owner, plan.id, Choice(step_id="gate", by="ann"))
        assert (await plan.ended())["status"] == "completed"


def has(events: Iterable[HistoryEvent], what: str) -> bool:
    """Whether an event is of a kind, such as `workflow_task_failed`."""
    return any(event.HasField(f"{what}_event_attributes") for event in events)  # type: ignore[arg-type]


def is_continued(events: Sequence[HistoryEvent]) -> bool:
    """Whether a run continues another one."""
    return bool(events[0].workflow_execution_started_event_attributes.continued_execution_run_id)


def begins_with_signal(events: Sequence[HistoryEvent]) -> bool:
    """Whether a signal came before the first task of a continued run that succeeded, and one has."""
    done = "workflow_task_completed"
    before = itertools.takewhile(lambda event: not has([event], done), events)
    return is_continued(events) and has(events, done) and has(before, "workflow_execution_signaled")


@pytest.mark.crosses_runs
async def test_unsigned_answers_and_events_count_for_nothing_also_before_the_rule_is_known(
    idle: Plans, owner: Client, make_worker: MakeWorker, queue: str
) -> None:
    ask = {"id": "ask", "tool": "ask", "args": {"question": "Which?"}}
    steps = [ask, {"id": "wait", "tool": "wait_for", "args": {"event": "paid"}}]
    message = {"plan": {"steps": steps}, "options": {"workspace": str(idle.workspace), **idle.options}}
    plan = await started(idle, owner, queue, message, f"plan-asks-{queue}")
    await plan.signal("answer", {"stepId": "ask", "value": "early"})
    await plan.signal("event", {"name": "paid"})
    async with make_worker(decisions="signed"):
        view = await plan.until(lambda view: all("awaiting" in each for each in view["steps"]), "both wait")
        assert [entry["text"].split()[:2] for entry in view["log"] if entry.get("code") == "UNSIGNED"] == [
            ["REFUSED:UNSIGNED", "answer:"], ["REFUSED:UNSIGNED", "event:"],
        ]  # fmt: skip
        assert await refused(plan, "answer", {"stepId": "ask", "value": "forged"}) == "UNSIGNED"
        assert await refused(plan, "event", {"name": "paid"}) == "UNSIGNED"
        await plan.signal("event", {"name": "paid"})
        await plan.until_logged("refused", "UNSIGNED event")
        # Control: the owner's count.
        assert "received by wait" in await runs.event(owner, plan.id, "paid", {"n": 1})
        await runs.answer(owner, plan.id, "ask", "mine", by="ann")
        view = await plan.ended()
    assert [step(view, name)["result"]["value"] for name in ("ask", "wait")] == ["mine", {"n": 1}]


async def started(idle: Plans, client: Client, queue: str, message: dict[str, Any], name: str) -> Started:
    await client.start_workflow("PlanWorkflow", message, id=name, task_queue=queue)
    return Started(idle.client, name)


@pytest.mark.modes("plain")
async def test_a_start_without_the_key_keeps_no_waiver(
    idle: Plans, owner: Client, settings: Settings, make_worker: MakeWorker, queue: str
) -> None:
    (idle.workspace / "kept").write_text("kept")
    options = {"workspace": str(idle.workspace), "approveAll": True}
    message = {"plan": {"steps": [WAIVED]}, "options": options}
    other = Ed25519PrivateKey.generate()
    mine = private_key(settings)
    forged = {
        "unsigned": message,
        "by-another": signed(other, "start", f"plan-by-another-{queue}", "", message),
        "for-another": signed(mine, "start", "plan-x", "", message),
        "changed": {
            **signed(mine, "start", f"plan-changed-{queue}", "", {**message, "options": {}}),
            "options": options,
        },
    }
    async with make_worker(decisions="signed"):
        for name, sent in forged.items():
            plan = await started(idle, idle.client, queue, sent, f"plan-{name}-{queue}")
            view = await plan.until_asked("gate")
            assert view["unsigned"] is True, name
            assert any("waivers are ignored" in entry["text"] for entry in view["log"]), name
            await plan.handle.terminate()
        assert (idle.workspace / "kept").exists()
        # Control: with the key the waiver counts.
        name = f"plan-mine-{queue}"
        plan = await started(idle, idle.client, queue, signed(mine, "start", name, "", message), name)
        view = await plan.ended()
        assert (view["status"], "unsigned" in view) == ("completed", False)
        assert not (idle.workspace / "kept").exists()


@pytest.mark.modes("plain")
async def test_with_open_decisions_an_unsigned_waiver_counts(idle: Plans, make_worker: MakeWorker, queue: str) -> None:
    (idle.workspace / "kept").write_text("kept")
    message = {"plan": {"steps": [WAIVED]}, "options": {"workspace": str(idle.workspace)}}
    async with make_worker():
        plan = await started(idle, idle.client, queue, message, f"plan-open-{queue}")
        assert (await plan.ended())["status"] == "completed"


@pytest.mark.modes("plain")
async def test_an_old_signed_start_cannot_be_used_again(
    idle: Plans, settings: Settings, make_worker: MakeWorker, queue: str
) -> None:
    (idle.workspace / "kept").write_text("kept")
    message = {"plan": {"steps": [WAIVED]}, "options": {"workspace": str(idle.workspace)}}
    name, now = f"plan-old-{queue}", time.time()
    sent = _signed_at(settings, name, message, now - 3_600)
    async with make_worker(decisions="signed"):
        plan = await started(idle, idle.client, queue, sent, name)
        view = await plan.until_asked("gate")
        assert any("too old" in entry["text"] for entry in view["log"])
        await plan.handle.terminate()


def _signed_at(settings: Settings, name: str, message: dict[str, Any], seconds: float) -> dict[str, Any]:
    from plansurvive.features.signing.model import signed_bytes

    content = signed_bytes("start", name, "", message, "a" * 32, int(seconds * 1_000))
    value = private_key(settings).sign(content).hex()
    return {**message, FIELD: {"id": "a" * 32, "time": int(seconds * 1_000), "value": value}}


@pytest.mark.modes("plain")
async def test_a_decision_before_the_worker_has_said_its_rule_must_be_made_again(
    idle: Plans, owner: Client, make_worker: MakeWorker, queue: str
) -> None:
    plan = await started(
        idle, owner, queue, {"plan": {"steps": [WAITING]}, "options": {"workspace": str(idle.workspace)}},
        f"plan-early-{queue}",
    )  # fmt: skip
    await plan.approve("gate")
    async with make_worker(decisions="signed"):
        view = await plan.until_asked("gate")
        assert not (idle.workspace / "made").exists()
        assert any("could be checked; decide again" in entry["text"] for entry in view["log"])
        await plan.handle.terminate()


@pytest.mark.modes("plain")
async def test_a_hand_made_run_cannot_bring_its_own_rule(
    idle: Plans, owner: Client, make_worker: MakeWorker, queue: str
) -> None:
    async with make_worker(decisions="signed"):
        plan = await waiting(idle, owner, queue)
        run = await plan.handle.query("state")
        run["facts"].pop("mustSign")
        nonce = run["parts"]["signing"]["nonce"]
        assert run["facts"].pop("parts")["signing"]["key"]
        run["decisions"] = {"gate": {"approved": True, "time": "2026-01-01T00:00:00Z"}}
        run["plan"]["id"] = f"hand-{queue}"
        forged = await started(idle, idle.client, queue, {"run": run}, f"plan-hand-{queue}")
        with pytest.raises(Exception, match="failed"):
            await forged.handle.result()
        draft = {**run, "plan": {**run["plan"], "id": f"draft-{queue}"}, "status": "draft", "steps": {"gate": {}}}
        second = await started(idle, idle.client, queue, {"run": draft}, f"plan-draft-{queue}")
        assert (await second.until_asked("gate"))["unsigned"] is True
        assert (await second.handle.query("state"))["parts"]["signing"]["nonce"] != nonce
        assert not (idle.workspace / "made").exists()
        await second.handle.terminate()
        await plan.handle.terminate()


REPEATED: dict[str, dict[str, Any]] = {
    "cron": {"cron_schedule": "@every 1s"},
    "retry": {"run_timeout": timedelta(seconds=1), "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1))},
}
"""Options of a start with which the server starts further runs of the same argument, as if they continued it."""


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.modes("plain")
@pytest.mark.parametrize("how", REPEATED)
@pytest.mark.on_server("cron and retries of workflows")
async def test_a_hand_made_run_that_the_server_repeats_cannot_bring_its_own_rule(
    idle: Plans, owner: Client, make_worker: MakeWorker, queue: str, how: str
) -> None:
    async with make_worker(decisions="signed"):
        plan = await waiting(idle, owner, queue)
        run = await plan.handle.query("state")
        digest = (await plan.handle.query("call", {"stepId": "gate"}))["digest"]
        await plan.handle.terminate()
    run["facts"].pop("mustSign")
    run["facts"].pop("parts")
    run["decisions"] = {"gate": {"approved": True, "digest": digest, "time": "2026-01-01T00:00:00Z"}}
    run["plan"]["id"] = f"{how}-{queue}"
    name = f"plan-{how}-{queue}"
    first = await idle.client.start_workflow("PlanWorkflow", {"run": run}, id=name, task_queue=queue, **REPEATED[how])
    if how == "retry":  # nobody answers the first run in time
        await until_another_run(idle.client, name, first.result_run_id)
    async with make_worker(decisions="signed"):
        await until_another_run(idle.client, name, first.result_run_id, is_closed=True)
    await terminated(idle.client, name)
    assert not (idle.workspace / "made").exists()


async def until_another_run(client: Client, name: str, first: str | None, is_closed: bool = False) -> None:
    """Wait until the server has started a second run; `is_closed`: until a later one than the first has ended."""

    async def has() -> bool:
        runs = [each async for each in client.list_workflows(f"WorkflowId = '{name}'")]
        later = [each for each in runs if each.run_id != first]
        return any(each.close_time is not None for each in later) if is_closed else bool(later)

    await until(has, "the server has repeated the start")


@pytest.mark.modes("plain")
async def test_a_child_agent_is_trusted_as_its_plan(
    idle: Plans, settings: Settings, make_worker: MakeWorker, queue: str
) -> None:
    agent = {"id": "agent", "tool": "agent", "args": {"objective": "wait"}, "requiresApproval": False}
    message = {"plan": {"steps": [agent]}, "options": {"workspace": str(idle.workspace), "approveAll": True}}
    async with make_worker(decisions="signed"):
        for is_signed in (True, False):
            name = f"plan-parent-{is_signed}-{queue}".lower()
            sent = signed(private_key(settings), "start", name, "", message) if is_signed else message
            plan = await started(idle, idle.client, queue, sent, name)
            child = Started(idle.client, f"agent-{name.removeprefix('plan-')}-agent")
            await child.until(lambda view: view["status"] != "draft", "it has begun")
            state = await child.handle.query("state")
            assert state["run"].get("unsigned", False) is not is_signed
            assert state["run"]["facts"].get("strictApprovals", False) is not is_signed
            assert state["run"]["options"].get("approveAll", False) is is_signed
            await plan.ended()  # its agent has no LLM to ask


def test_a_key_that_others_can_read_is_refused(settings: Settings) -> None:
    from plansurvive.runtime.settings import SettingError

    private_key(settings)
    path = settings.state_dir / "decisions.key"
    assert path.stat().st_mode & 0o777 == 0o600
    for mode in (0o644, 0o640, 0o604, 0o602):
        path.chmod(mode)
        with pytest.raises(SettingError, match="others may read or change"):
            private_key(settings)
    path.chmod(0o600)
    moved = replace_with_link(path)
    with pytest.raises(SettingError, match="cannot be read"):
        private_key(settings)
    path.unlink()
    moved.rename(path)
    assert private_key(settings).public_key().public_bytes_raw()


def replace_with_link(path: Any) -> Any:
    moved = path.with_name("moved.key")
    path.rename(moved)
    path.symlink_to(moved)
    return moved
