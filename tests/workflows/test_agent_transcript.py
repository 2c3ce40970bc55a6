"""An agent in a plan, interrupted at any moment: what its model is told is what the ledger says that happened."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from plansurvive.client.verbs import resume
from tests.kit.driving import Plans, Started, View
from tests.kit.waiting import until
from tests.nightly import sampled
from tests.workflows.agents import Agents, Serving, call, serving
from tests.workflows.transcripts import agent_of, occurrences, prompts, texts, told

pytestmark = pytest.mark.uses("agents")

AGENT = {"id": "agent", "tool": "agent", "args": {"objective": "Sign three times."}}
EDITED = "-by-ann"
CALLS = {
    1: [call("work", name="1.a", value="worked 1.a"), call("sign", text="1.b", path="b"),
        call("sign", text="1.c", path="c")],
    2: [call("sign", text="2.a"), call("sign", text="2.b"), call("work", name="2.c", value="worked 2.c")],
    3: [call("work", name="3.a", value="worked 3.a"), call("sign", text="3.b", path="b"),
        call("sign", text="3.c", path="b")],
}  # fmt: skip
"""By task. Calls of `sign` with different paths are made side by side; all others one after the other."""
NEEDS = {"1.b": ["1.a"], "1.c": ["1.a"], "2.b": ["2.a"], "2.c": ["2.a", "2.b"], "3.b": ["3.a"], "3.c": ["3.a", "3.b"]}
MOMENTS = 24
"""How many things happen at least until the end: requests, lines of the ledger, decisions."""


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


def story() -> list[dict[str, Any]]:
    """A model without memory: it looks at its prompt only, and takes its time."""
    said: list[tuple[dict[str, Any], str]] = [
        ({"tool_calls": [call("plan_actions", reason="three")]}, "Call the tools you need, or answer."),
        ({"tasks": ["Do one", "Do two", "Do three"]}, "Split the request into tasks"),
    ]
    for number, calls in CALLS.items():
        said.append(({"task_completed": f"{number} has ended"}, f"Task {number} is still open"))
        said.append(
            ({"tool_calls": calls, "task_completed": f"{number} is done"}, f"=== CURRENT TASK ===\nTask {number}:")
        )
    said.append(({"final_answer": "All done."}, "ALL 3 tasks are complete"))
    return [{"reply": {"json": value, "delay": 0.05}, "when": {"last": when}, "times": 0} for value, when in said]


@dataclass
class Person:
    """Decides on every call of `sign`: half of them with other arguments, some are denied."""

    chance: random.Random
    decisions: dict[str, str] = field(default_factory=dict)
    sent: int = 0

    async def decide(self, agent: Started, asked: dict[str, Any]) -> None:
        """Answer a question of the agent, in the same way if it is asked again after a resume."""
        text = asked["args"]["text"]
        choice = self.decisions.setdefault(text, self.chance.choice(["edit", "edit", "approve", "approve", "deny"]))
        message = {"stepId": asked["stepId"], "by": "ann", "comment": f"on {text}"}
        if choice == "edit":
            message["args"] = {**asked["args"], "text": text + EDITED}
        with suppress(RPCError):  # interrupted meanwhile: the resumed run asks again
            await agent.signal("deny" if choice == "deny" else "approve", message)
            self.sent += 1
            await agent.until(lambda view: asked not in view["pending"], "it has the decision")

    def expected(self, text: str) -> str | None:
        """What a call must have written; None if it must not have been made."""
        if any(self.expected(name) is None for name in NEEDS.get(text, ())) or self.decisions.get(text) == "deny":
            return None
        return text + EDITED if self.decisions.get(text) == "edit" else text


async def _driven(agents: Agents, plan: Started, person: Person, moment: int | None) -> View:
    """Answer what the agent asks until the plan has ended; interrupt it at that moment."""
    agent, waiting, looked_at = agent_of(plan), [moment], [("", 0)]

    async def look() -> bool:
        if (await plan.handle.describe()).status is not WorkflowExecutionStatus.RUNNING:
            return True
        happened = len(agents.prompts) + len(agents.plans.ledger) + person.sent
        if waiting[0] is not None and happened >= waiting[0]:
            waiting[0] = None
            with suppress(RPCError):  # it has just ended
                await plan.signal("interrupt", {"by": "bob"})
        with suppress(RPCError):  # the agent has not begun, or has ended
            found = await agent.handle.describe()
            now = (found.run_id or "", found.history_length)
            if now == looked_at[0]:  # nothing new; and for each query a worker without a cache begins anew
                return False
            pending = (await agent.view())["pending"]
            looked_at[0] = ("", 0) if len(pending) > 1 else now
            if pending:
                await person.decide(agent, person.chance.choice(pending))
        return False

    await until(look, "the plan has ended", every=0.02)
    return await plan.ended()


@pytest.mark.crosses_runs
@pytest.mark.parametrize("seed", sampled(range(20), 1))
async def test_the_transcript_of_an_agent_that_is_interrupted_anywhere_equals_the_ledger(
    serve: Serving, seed: int
) -> None:
    chance = random.Random(seed)
    moments = sorted(chance.sample(range(1, MOMENTS), 2))
    async with serve(story()) as agents:
        budget = {"budget": {"calls": 1_000}} if seed % 4 in (1, 2) else {}  # then it asks before each request
        person, plan = Person(chance), await agents.plans.start([AGENT], **budget)
        runs = [agent_of(plan)]
        view = await _driven(agents, plan, person, moments[0])
        for moment in [*moments[1:], None]:
            if view["status"] == "completed":
                break
            plan = Started(plan.client, (await resume.resume(plan.client, plan.id, "bob")).workflow_id)
            runs.append(agent_of(plan))
            view = await _driven(agents, plan, person, moment)
        assert view["status"] == "completed"
        _the_ledger_is_as_decided(agents, person)
        _every_prompt_is_true(prompts(agents), person)
        await _every_result_is_the_true_one(runs, agents, person)
        _the_history_of_the_step_is_true(view, person)
        assert view["tokens"]["calls"] == len(agents.prompts)


def _ran(agents: Agents) -> list[str]:
    return [line[1] for line in agents.plans.ledger if line[0] in ("end", "signed")]


def _all() -> list[str]:
    return [texts(each["args"]) for calls in CALLS.values() for each in calls]


def _the_ledger_is_as_decided(agents: Agents, person: Person) -> None:
    expected = [made for text in _all() if (made := person.expected(text)) is not None]
    assert sorted(_ran(agents)) == sorted(expected)


def _every_prompt_is_true(asked: list[str], person: Person) -> None:
    """No result stands in a prompt twice or untruly, and the last prompt has all of them."""
    verbs = {texts(each["args"]): "worked" if each["tool"] == "work" else "signed"
             for calls in CALLS.values() for each in calls}  # fmt: skip
    for number, prompt in enumerate(asked):
        for text in _all():
            made = person.expected(text)
            for possible in (text, text + EDITED):
                count = occurrences(prompt, f"{verbs[text]} {possible}")
                assert count <= (possible == made), (number, text, prompt)
            assert occurrences(prompt, f"User denied approval: on {text}") <= (person.decisions.get(text) == "deny")
        assert "interrupted by" not in prompt
    for text in _all():
        if made := person.expected(text):
            assert occurrences(asked[-1], f"{verbs[text]} {made}") == 1, asked[-1]
        elif person.decisions.get(text) == "deny":
            assert occurrences(asked[-1], f"User denied approval: on {text}") == 1, asked[-1]


async def _every_result_is_the_true_one(runs: list[Started], agents: Agents, person: Person) -> None:
    results = await told(runs)
    assert sorted(results) == list(range(1, 10))
    for number, text in enumerate(_all(), 1):
        result = results[number][0]
        assert all(each == result for each in results[number])  # again only after an answer that was dropped
        made, denied = person.expected(text), person.decisions.get(text) == "deny"
        if made is None:
            assert result.state == ("denied" if text in person.decisions and denied else "failed")
            assert (texts(result.args), result.asked) == (text, None)
            continue
        assert (result.state, texts(result.args)) == ("done", made)
        assert texts(result.asked) == (text if made != text else "")
        assert result.by == ("ann" if text in person.decisions else "")


def _the_history_of_the_step_is_true(view: View, person: Person) -> None:
    records = [each for each in view["step_tool_history"]["0"] if each["tool"] != "agent"]
    expected = {made: text for text in _all() if (made := person.expected(text)) is not None}
    assert {texts(each["args"]) for each in records} == set(expected)  # each agent reports all calls it knows of
    for each in records:
        made = texts(each["args"])
        changed = made != expected[made]
        assert texts(each.get("asked")) == (expected[made] if changed else "")
        assert each.get("changedBy", "") == ("ann" if changed else "")
