"""kill -9 of the worker while the LLM plans, revises or mends, while people review and approve: nothing is lost.

A call of the LLM that was answered and recorded is never made again; one that died with its worker comes again with the
same key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from tests.chaos.conftest import Chaos
from tests.kit.driving import step
from tests.kit.waiting import until
from tests.workflows.talking import answer, make, write

READ = {"id": "read", "tool": "read_file", "args": {"path": "missing.txt"}}
COPY = write("copy", "read", content="$read", requiresApproval=True)
MADE = write("make", args={"path": "missing.txt", "content": "mended"})


@pytest.fixture
def llm() -> Iterator[ScriptedLlm]:
    """An LLM that takes its time: each of its answers can be killed in between."""
    script = [
        {"when": {"schema": "plan"}, "reply": {**answer({**READ, "tool": "rm_rf"}, COPY), "delay": 3.0}},
        {"when": {"schema": "plan"}, "reply": {**answer(READ, COPY), "delay": 3.0}},
        {
            "when": {"schema": "recovery"},
            "reply": {"json": {"action": "insert", "steps": [MADE], "reason": "it was missing"}, "delay": 3.0},
        },
    ]
    with ScriptedLlm(Script.of(script)) as server:
        yield server


def keys(llm: ScriptedLlm) -> list[str]:
    """The keys of the requests, in order."""
    return [seen.headers["idempotency-key"] for seen in llm.play.seen]


@pytest.mark.slow
async def test_a_worker_killed_at_every_stage_loses_nothing_and_repeats_no_answered_call(
    chaos: Chaos, llm: ScriptedLlm
) -> None:
    chaos.worker.environ |= {"OPENAI_BASE_URL": llm.url, "PLANS_MODEL": "demo"}

    async def killed() -> None:
        chaos.worker.kill()
        await chaos.worker.up()

    await chaos.worker.up()
    plan = await make(chaos.plans, "copy the notes", defaults={"onFailure": "ask_llm"})
    await until(lambda: len(set(keys(llm))) == 2, "the LLM corrects its plan")
    await killed()  # while it plans
    await plan.until(lambda view: view["status"] == "review", "review")
    planned = len(keys(llm))
    await killed()  # in review
    edits = [{"op": "set", "stepId": "copy", "path": "description", "value": "Copy them"}]
    await plan.handle.execute_update("edit", {"edits": edits, "expectVersion": 1})
    await killed()
    await plan.signal("begin")
    await until(lambda: len(set(keys(llm))) == 3, "the LLM is asked to mend")
    await killed()  # while it mends
    await plan.until(lambda view: view["pending"], "a person is asked")
    asked = len(keys(llm))
    chaos.worker.kill()  # while it waits for a person, who decides while there is no worker
    await plan.approve("copy")
    await chaos.worker.up()
    view = await plan.ended()
    assert (view["status"], step(view, "copy")["description"]) == ("completed", "Copy them")
    assert (chaos.plans.workspace / "copy.txt").read_text() == "mended"
    assert (planned, asked, len(keys(llm))) == (3, 5, 5)  # one more each time it was killed while it answered
    assert len(set(keys(llm))) == view["tokens"]["calls"] == 3
    assert not llm.play.unexpected


@pytest.mark.slow
async def test_a_worker_killed_while_a_running_plan_is_revised_loses_neither_the_plan_nor_the_answer(
    chaos: Chaos,
) -> None:
    better = {**answer(write("ask", "one"), write("two", "ask", content="better")), "delay": 3.0}
    with ScriptedLlm(Script.of([{"reply": better}, {"reply": better}])) as llm:
        chaos.worker.environ |= {"OPENAI_BASE_URL": llm.url, "PLANS_MODEL": "demo"}
        await chaos.worker.up()
        plan = await chaos.plans.start([write("one"), write("ask", "one", requiresApproval=True), write("two", "ask")])
        await plan.until_asked("ask")
        revised = asyncio.create_task(plan.handle.execute_update("regenerate", {"feedback": "say it better"}))
        await until(lambda: llm.play.seen, "the LLM is asked")
        chaos.worker.kill()
        await plan.approve("ask")
        await chaos.worker.up()
        assert (await revised)["version"] == 2
        view = await plan.view()
        assert (view["status"], step(view, "one")["status"]) == ("review", "completed")
        assert not (chaos.plans.workspace / "two.txt").exists()
        await plan.signal("begin")
        view = await plan.ended()
        assert len(keys(llm)) == 2  # once more: it was killed while it answered
        assert len(set(keys(llm))) == view["tokens"]["calls"] == 1
    assert (view["status"], (chaos.plans.workspace / "two.txt").read_text()) == ("completed", "better")
