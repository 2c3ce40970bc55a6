"""Plans whose people are notified, and what delivers that to them, whose histories are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError

from tests.kit.driving import Plans, Started, work
from tests.kit.sinks import Sink, targets_file, webhook_sink
from tests.kit.waiting import until

Scenario = Callable[[Plans], Awaitable[Started]]
RULE = {"to": "hook", "remind": 1.0, "escalate": {"after": 1.5, "to": "hook"}}
CHAIN = [work("s1"), work("s2", "s1"), work("s3", "s2")]


async def _plan(plans: Plans, sink: Sink, options: Mapping[str, Any]) -> Started:
    """A plan in review, with an approval and a question that are said, and a child plan with an approval."""
    targets_file(plans.workspace.parent / "state" / "notify.toml", hook=sink.url)
    child = {"id": "child", "tool": "plan", "args": {"steps": [work("in", requiresApproval=True)], "id": "notified-in"}}
    ask = {"id": "ask", "tool": "ask", "args": {"question": "Which?"}}
    steps = [*CHAIN, work("gate", "s1", requiresApproval=True), ask, {**child, "dependsOn": ["gate", "s3"]}]
    started = await plans.start(steps, {"review": True, **options}, notify=[RULE])
    await until(lambda: sink.events, "the review is said")
    await started.signal("begin")
    await started.until_asked("gate")
    await until(lambda: _said(sink) >= {"gate", "ask"}, "both questions are said")
    await started.approve("gate")
    await started.signal("answer", {"stepId": "ask", "value": "x"})
    await until(lambda: "in" in _said(sink), "the child's question is said")
    await plans.client.get_workflow_handle("plan-notified-in").signal("approve", {"stepId": "in"})
    await started.ended()
    await until(lambda: sink.events[-1]["type"].endswith("completed"), "the end is said")
    return started


def _said(sink: Sink) -> set[str]:
    """The steps that were said."""
    return {item.get("stepId", "") for event in sink.events for item in event["data"]["items"]}


def _notified(options: Mapping[str, Any]) -> Scenario:
    async def notified(plans: Plans) -> Started:
        with webhook_sink() as sink:
            return await _plan(plans, sink, options)

    return notified


async def _delivered(plans: Plans) -> Started:
    """The workflow that delivers: a target that is away at first, messages, reminders, an escalation."""
    with webhook_sink() as sink:
        sink.status = 503
        targets_file(plans.workspace.parent / "state" / "notify.toml", hook=sink.url)
        started = await plans.start([work("gate", requiresApproval=True)], notify=[RULE])
        await until(lambda: sink.posts, "it is tried")
        sink.status = 204
        wanted = ("awaiting", "reminder", "escalation")
        await until(lambda: {e["type"].rpartition(".")[2] for e in sink.events} >= set(wanted), "all are said")
        await started.approve("gate")
        await started.ended()
        await until(lambda: sink.events[-1]["type"].endswith("completed"), "the end is said")
        notifier = Started(started.client, f"notify-{started.id}")
        await notifier.signal("news", {"nonsense": 1})
        await notifier.handle.terminate()
        return notifier


async def _refused(plans: Plans) -> Started:
    """A plan that its worker refuses: that is said as well."""
    started = await plans.start([{"id": "a", "tool": "unheard_of", "args": {}}], notify="hook")
    with suppress(WorkflowFailureError):
        await started.handle.result()
    return started


async def _cancelled(plans: Plans) -> Started:
    """A plan that is cancelled while a target is away, with notifications switched on while it waited."""
    started = await plans.start([work("gate", requiresApproval=True)])
    await started.until_asked("gate")
    value = {"to": "hook", "on": ["awaiting", "cancelled"]}
    await started.handle.execute_update("edit", {"edits": [{"op": "set", "path": "notify", "value": value}]})
    notifier = Started(started.client, f"notify-{started.id}")
    await until(lambda: _is_there(notifier), "what waits is handed over")
    await started.handle.cancel()
    await started.ended()
    await notifier.handle.terminate()
    return started


async def _is_there(started: Started) -> bool:
    try:
        await started.handle.describe()
    except RPCError:
        return False
    return True


NOTIFIED: dict[str, Scenario] = {
    "notified": _notified({}),
    "notified-continued": _notified({"historyLimit": 10}),
    "notified-refused": _refused,
    "notified-cancelled": _cancelled,
    "notifications": _delivered,
}
