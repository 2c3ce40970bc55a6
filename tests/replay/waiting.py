"""Plans that ask questions and wait for events, whose histories are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from plansurvive.plans.child_ids import child_id
from tests.kit.driving import Plans, Started, work
from tests.kit.waiting import until

Scenario = Callable[[Plans], Awaitable[Started]]
SHORT = {"historyLimit": 12}


def _ask(step_id: str, *needs: str, **args: Any) -> dict[str, Any]:
    return {"id": step_id, "tool": "ask", "dependsOn": list(needs), "args": {"question": "Which?", **args}}


def _wait(step_id: str, *needs: str, **args: Any) -> dict[str, Any]:
    return {"id": step_id, "tool": "wait_for", "dependsOn": list(needs), "args": {"event": "paid", **args}}


def _asks(options: Mapping[str, Any] | None = None) -> Scenario:
    async def asked(plans: Plans) -> Started:
        """An early answer, refused ones, one by signal and one by update; time limits of each kind; an edit."""
        late = {"timeout": 0.3}
        number = {"type": "integer", "minimum": 1}
        steps = [
            work("a"), _ask("early", "a", choices=["x", "y"]), _ask("signal", "a", schema=number), _ask("update", "a"),
            _ask("default", default="d", **late), _ask("skip", onTimeout="skip", **late), _ask("fail", **late),
            _ask("gated", "signal", timeout=600.0), work("end", "early", "update"),
        ]  # fmt: skip
        steps[-2]["requiresApproval"] = True
        started = await plans.start(steps, options)
        await started.signal("answer", {"stepId": "early", "value": "x"})
        await started.until_asked("signal")
        await started.signal("answer", {"stepId": "signal", "value": 0})
        await started.signal("approve", {"stepId": "signal"})
        await started.until_logged("refused", "IS_A_QUESTION")
        await started.signal("answer", {"stepId": "signal", "value": 3, "by": "ann"})
        await started.signal("answer", {"stepId": "signal", "value": 4})
        edit = {"op": "set", "stepId": "update", "path": "args.choices", "value": ["p", "q"]}
        await started.until_asked("update")
        await started.handle.execute_update("edit", {"edits": [edit]})
        view = await started.until(
            lambda view: any(item["args"].get("choices") == ["p", "q"] for item in view["pending"]), "it asks again"
        )
        digest = next(item["digest"] for item in view["pending"] if item["stepId"] == "update")
        await started.handle.execute_update("answer", {"stepId": "update", "value": "q", "digest": digest})
        await started.until_asked("gated")
        await started.approve("gated")
        await started.until(lambda view: [item["kind"] for item in view["pending"]] == ["question"], "it asks")
        await started.signal("answer", {"stepId": "gated", "value": "yes"})
        await started.ended()
        return started

    return asked


def _waits(options: Mapping[str, Any] | None = None) -> Scenario:
    async def waited(plans: Plans) -> Started:
        """Events before and while steps wait, for none, one and several of them; a time limit; a cancelled wait."""
        steps = [
            _ask("id", schema={"type": "integer"}), _wait("own", "id", match="id == {{id}} && total > `1`"),
            _wait("any", timeout=600.0), _wait("late", timeout=0.3, match="id == `9`"), _wait("never", event="other"),
        ]  # fmt: skip
        started = await plans.start(steps, options)
        await started.until_asked("never")
        await started.signal("event", {"name": "unknown", "data": [1]})
        await started.signal("event", {"name": "no name at all!"})
        for number, total in ((6, 2), (7, 1), (7, 2)):
            await started.handle.execute_update("event", {"name": "paid", "data": {"id": number, "total": total}})
        await started.until_status("late", "failed")
        await started.signal("answer", {"stepId": "id", "value": 7})
        await started.until_status("own", "completed")
        await started.signal("pause")
        await started.signal("interrupt")
        await started.ended()
        return started

    return waited


def _below(path: tuple[str, ...], options: Mapping[str, Any] | None = None) -> Scenario:
    async def passed_on(plans: Plans) -> Started:
        """Events before and while steps below wait, for a child plan, one below it, and a batch. One of these plans."""
        kid = [_wait("first"), _wait("again", "first", event="late"), {"id": "kid", **_plan([_wait("small")])}]
        loop = {"id": "each", "forEach": {"items": ["a"], "mode": "plans", "key": "@"}, "tool": "wait_for"}
        steps = [_wait("begin", event="begin"), {"id": "top", **_plan(kid)}, loop | {"args": {"event": "late"}}]
        started = await plans.start([steps[0], *({**each, "dependsOn": ["begin"]} for each in steps[1:])], options)
        await started.until_asked("begin")
        await started.handle.execute_update("event", {"name": "paid", "data": 1})
        await started.signal("event", {"name": "begin"})
        names = [started.id]

        async def all_wait() -> bool:
            asks = (await started.handle.query("summary")).get("asks", [])
            return [each.get("event") for each in asks].count("late") == 2

        await until(all_wait, "a step of the child plan and one of the batch wait for the next one")
        await started.handle.execute_update("event", {"name": "late", "data": 2})
        await started.ended()
        for step_id in path:
            names.append(f"plan-{child_id(names[-1].removeprefix('plan-'), step_id, 1)}")
        return Started(started.client, names[-1])

    return passed_on


def _plan(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"tool": "plan", "args": {"steps": steps}}


WAITING: dict[str, Scenario] = {
    "questions": _asks(),
    "questions-continued": _asks(SHORT),
    "events": _waits(),
    "events-continued": _waits(SHORT),
    "events-below": _below(()),
    "events-above": _below(("top",)),
    "events-above-all": _below(("top", "kid")),
    "events-above-continued": _below(("top",), SHORT),
}
