"""PLANS_DECISIONS=signed: every message that lets a plan do more needs a signature, in every registered workflow type.

`HARMLESS` has the others, each with the reason why it counts unsigned. A handler that is in neither fails; so does one
that is said to be signed and takes an unsigned message, and a list of signed messages that differs from the handlers.
"""

from __future__ import annotations

from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.features.audit import messages as audited
from plansurvive.features.audit.entries import Signed
from plansurvive.features.audit.report import DECIDED
from plansurvive.features.signing.model import ADDED, SIGNED_MESSAGES
from plansurvive.features.signing.signer import Signer
from plansurvive.features.workflow_types import FEATURES_OF_WORKER, WORKFLOWS
from plansurvive.plans.signature import FIELD
from plansurvive.runtime.settings import Settings
from plansurvive.workflows.feature import messages_of
from tests.kit.driving import Plans, Started
from tests.workflows.agents import Agents, call, says
from tests.workflows.conftest import MakeWorker

pytestmark = pytest.mark.uses("signing")

STOPS = "stops what runs, which who has the port can do with any workflow by a terminate"
FORGEABLE = (
    "from another workflow of ours; counts only with the token of what was asked, or from what works on the step"
)
KEEPER = "from plans, to what keeps places, counts or news: forged, it lets wait or begin, as a terminate does"
OF_RUNS = {
    **dict.fromkeys(("pause", "interrupt", "abandon"), STOPS),
    "files_changed": "makes steps read a file again before they change it",
    "agent_progress": "what the agent of a step says of its work; " + FORGEABLE,
    "budget_answer": "a grant of one request that was asked for; " + FORGEABLE,
    "events_wanted": "which events a child plan is sent; refused where only signed ones count",
    "events_passed": "refused where only signed events count",
    "place": "where the files are; a worker of a forged place needs the namespace's own task queues",
    "place_report": "who has left a place; " + FORGEABLE,
    "workspace_lock": FORGEABLE,
    "quota_place": FORGEABLE,
}
OF_CODING_AGENTS = {
    "coding_session": "which session a coding agent has: forged, it continues another one, and asks as before",
    "coding_permission": "asks a person, and tells what was decided, which `plan show` does as well",
    "coding_given": "a decision is used up: forged, the same call asks again",
    "coding_command": "runs what the policy allows any agent to run; asks a person about all else, as a step does",
    "coding_command_end": STOPS,
    "coding_tasks": "what a coding agent says of its work",
    "coding_progress": "the same; what it says it has spent counts against the budget of its plan",
}
OF_PLANS_ALONE = ("agent_progress", "place_report", "events_wanted", "events_passed")
OF_AGENTS = {
    **{name: why for name, why in OF_RUNS.items() if name not in OF_PLANS_ALONE},
    **OF_CODING_AGENTS,
}
HARMLESS: dict[str, dict[str, str]] = {
    "PlanWorkflow": OF_RUNS,
    "AgentWorkflow": OF_AGENTS,
    "CodingAgentWorkflow": OF_AGENTS,
    "ChangesWorkflow": {},
    "PruneWorkflow": {},
    "LimitsWorkflow": {"exchange": KEEPER},
    "NotifyWorkflow": {"news": "says only what a worker has signed (test_who_may_start)"},
    "WorkspaceLockWorkflow": dict.fromkeys(("ask", "release"), KEEPER),
    "QuotaWorkflow": dict.fromkeys(("ask", "release"), KEEPER),
}  # fmt: skip
"""By workflow type and name of the signal or update. The dynamic signal handler refuses all that it is sent."""
MESSAGES: dict[str, list[dict[str, Any]]] = {
    "approve": [{"stepId": "STEP"}],
    "deny": [{"stepId": "STEP"}],
    "decide": [
        {"stepId": "STEP", "approved": True},
        {"stepId": "STEP", "approved": False},
        {"stepId": "STEP", "approved": True, "override": True, "comment": "now"},
    ],
    "withdraw": [{"stepId": "STEP"}],
    "begin": [{}],
    "unpause": [{}],
    "clear_session": [{}],
    "control": [{"action": "begin"}, {"action": "unpause"}, {"action": "clear_session"}],
    "edit": [{"edits": [{"op": "set", "stepId": "STEP", "path": "args.path", "value": "x"}]}],
    "regenerate": [{"feedback": "do it"}],
    "answer": [{"stepId": "STEP", "value": "x"}],
    "event": [{"name": "paid"}],
}
"""Of each signed message, what has an effect if it is honoured."""
KINDS = {"signal": "signals", "update": "updates"}


def handlers(kind: type, of: str) -> set[str]:
    """The names of the signals or updates of a workflow type."""
    definition = workflow._Definition.must_from_class(kind)
    return {name for name in getattr(definition, KINDS[of]) if name is not None}


def all_of(kind: type) -> set[str]:
    return handlers(kind, "signal") | handlers(kind, "update")


@pytest.mark.parametrize("kind", WORKFLOWS, ids=lambda kind: kind.__name__)
def test_every_handler_is_of_a_signed_message_or_does_no_harm(kind: type) -> None:
    harmless = HARMLESS[kind.__name__]
    assert all_of(kind) - SIGNED_MESSAGES.keys() == harmless.keys(), "sign it, or say why a forged one does no harm"
    assert not harmless.keys() & SIGNED_MESSAGES.keys()


def test_all_lists_of_signed_messages_have_the_same_ones() -> None:
    # 1. What clients sign is what some workflow handles, and the audit record looks for a signature in that.
    assert SIGNED_MESSAGES.keys() == set().union(*(all_of(kind) for kind in WORKFLOWS)) & MESSAGES.keys()
    # 2. What features declare as signed.
    for each in messages_of(FEATURES_OF_WORKER.in_run):
        assert each.signed == (each.name in SIGNED_MESSAGES and each.kind != "query"), each
    # 3. A kind is the update of that name; a signal that is another form of it says what its name says.
    updates = set().union(*(handlers(kind, "update") for kind in WORKFLOWS))
    assert set(SIGNED_MESSAGES.values()) <= updates
    assert {name for name, kind in SIGNED_MESSAGES.items() if name != kind} == ADDED.keys()
    # 4. What `plan audit` counts as unsigned, by the name of an entry.
    proof = Signed(kind="decide", id="0" * 32, time=0, value="0" * 128)
    assert proof.kind in SIGNED_MESSAGES.values()
    actions = {audited.of_message(name, message, "")["action"] for name, some in MESSAGES.items() for message in some}
    assert actions - {"clear_session"} == DECIDED - {"started"}


def test_no_signed_message_is_handled_before_the_rule_is_known() -> None:
    """What is `early` does not wait for the facts, which say with what key its signature would be verified."""
    messages = messages_of([*FEATURES_OF_WORKER.in_run, *FEATURES_OF_WORKER.of_agents.in_run])
    assert [each.name for each in messages if each.signed and each.early] == []
    # Control: there are both kinds.
    assert any(each.signed for each in messages)
    assert any(each.early for each in messages)


async def refusals(plan: Started, kind: type, step_id: str) -> None:
    """Send each signed message of the type unsigned, and with a signature of nothing; none is honoured."""
    before = await plan.view()
    noise = {"id": "0" * 32, "time": 0, "value": "0" * 128}
    wanted = 0
    for name in sorted(all_of(kind) & SIGNED_MESSAGES.keys()):
        for pattern in MESSAGES[name]:
            message = {field: step_id if value == "STEP" else value for field, value in pattern.items()}
            for sent, code in ((message, "UNSIGNED"), ({**message, FIELD: noise}, "BAD_SIGNATURE")):
                if name in handlers(kind, "signal"):
                    await plan.signal(name, sent)
                    wanted += 1
                if name in handlers(kind, "update"):
                    with pytest.raises(WorkflowUpdateFailedError) as caught:
                        await plan.handle.execute_update(name, sent)
                    assert isinstance(caught.value.cause, ApplicationError)
                    assert caught.value.cause.type == code, (name, sent)

    def told(view: dict[str, Any]) -> list[str]:
        codes = ("UNSIGNED", "BAD_SIGNATURE")
        return [entry["text"] for entry in view["log"] if entry["kind"] == "refused" and entry["code"] in codes]

    view = await plan.until(lambda view: len(told(view)) == wanted, "each signal is refused for its signature")
    same = ("status", "version", "pending")
    assert {name: view[name] for name in same} == {name: before[name] for name in same}
    assert [each.get("decision") for each in view["steps"]] == [None] * len(view["steps"])


@pytest.fixture
def owner(temporal_client: Client, settings: Settings) -> Client:
    """A client of the key's owner: as `runtime.connect` makes it with PLANS_DECISIONS=signed."""
    config = temporal_client.config()
    config["interceptors"] = [Signer(settings)]
    return Client(**config)


async def test_no_signed_message_is_honoured_by_a_plan_without_its_signature(
    idle: Plans, owner: Client, make_worker: MakeWorker
) -> None:
    gate = {"id": "gate", "tool": "create_directory", "args": {"path": "made"}, "requiresApproval": True}
    async with make_worker(decisions="signed"):
        plan = await Plans(owner, idle.queue, idle.workspace, idle.options).start([gate])
        await plan.until_asked("gate")
        await plan.signal("pause")
        await plan.until(lambda view: view["status"] == "paused", "it is paused, so that an unpause has an effect")
        await refusals(Started(idle.client, plan.id), workflow_type("PlanWorkflow"), "gate")
        await plan.handle.terminate()


async def test_no_signed_message_is_honoured_by_an_agent_without_its_signature(
    idle: Plans, owner: Client, make_worker: MakeWorker
) -> None:
    (idle.workspace / "kept").touch()
    with ScriptedLlm(Script.of([says({"tool_calls": [call("delete_file", path="kept")]}, times=0)])) as llm:
        async with make_worker(decisions="signed", openai_base_url=llm.url, model="demo"):
            plan = await Agents(Plans(owner, idle.queue, idle.workspace, idle.options), llm).start("Delete it.")
            await plan.until(lambda view: view["pending"], "it asks")
            await plan.signal("pause")
            await plan.until(lambda view: view["status"] == "paused", "it is paused")
            await refusals(Started(idle.client, plan.id), workflow_type("AgentWorkflow"), "call_1")
            await plan.handle.terminate()
    assert (idle.workspace / "kept").exists()


def workflow_type(name: str) -> type:
    return next(kind for kind in WORKFLOWS if kind.__name__ == name)
