"""What `ask_llm` makes of an answer: a typed value, or all that is wrong with it; a hostile schema holds no worker."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from plansurvive.activities.llm.composing import Site
from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.agents.in_requests import JUDGE_SECONDS, Talk
from plansurvive.features.agents.model.answers import SimpleAnswer
from plansurvive.features.agents.model.conversation import Conversation
from plansurvive.features.agents.model.question import Continuation
from plansurvive.plans.llm.answers import Expected, PlanAnswer
from plansurvive.plans.llm.endpoint import CONTEXT_TOKENS
from plansurvive.plans.llm.request import LlmAnswer, LlmRequest
from plansurvive.plans.llm.schemas import plan_schema
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore
from tests.activities.asking import asking, request
from tests.plans.hostile_schemas import ENDLESS, HARMLESS

SPECS = [tool.spec for tool in load_tools([]).values()]
STEP = {"id": "a", "tool": "read_json", "args": {"path": "a.json"}}


async def test_an_answer_comes_back_typed(tmp_path: Path) -> None:
    given = {"title": "Read", "steps": [STEP | {"requiresApproval": False}]}
    with asking([{"reply": {"json": given}}], tmp_path) as scene:
        answer = await scene.once(request(expected=Expected(kind="plan", tools=SPECS)))
        found = PlanAnswer.model_validate(answer.parsed)
        assert (found.plan.title, [step.tool for step in found.plan.steps]) == ("Read", ["read_json"])
        assert "only a person can waive an approval" in found.notes[0]
        assert json.loads(answer.text) == given  # the workflow may still send it back
        assert scene.llm.bodies[0]["response_format"]["json_schema"]["schema"] == plan_schema(SPECS)


async def test_an_answer_of_the_wrong_kind_comes_back_with_all_its_problems(tmp_path: Path) -> None:
    with asking([{"reply": {"json": {"action": "retry", "args": 5, "reason": 7}}}], tmp_path) as scene:
        answer = await scene.once(request(expected=Expected(kind="recovery", tools=SPECS)))
        assert answer.parsed is None
        assert [line.partition(":")[0] for line in answer.problems] == ["args", "reason"]
        assert answer.text
        assert all(line in answer.problem for line in answer.problems)


def agent(**fields: Any) -> LlmRequest:
    """The first question of an agent that has all tools."""
    question = {"asked": "simple", "tools": [spec.name for spec in SPECS], "request": "Do it.", **fields}
    return LlmRequest.model_validate({"purpose": "agent", "parts": {"agents": question}, "schemaName": "simple_answer"})


async def test_an_agent_is_judged_by_the_tools_it_was_shown(tmp_path: Path) -> None:
    calls = [{"tool": "read_json", "args": {"path": "a"}}, {"tool": "delete_file", "args": {"path": "a"}}]
    replies = [{"reply": {"json": {"tool_calls": calls[:number]}}} for number in (1, 2)]
    with asking(replies, tmp_path, tools=SPECS) as scene:
        first = await scene.once(agent(tools=["read_json"]))
        assert (first.text, first.parsed, first.problem) == ("", {"toolCalls": calls[:1]}, "")
        second = await scene.once(agent(tools=["read_json"]))
        assert (second.parsed, second.problems[0][:33]) == (None, "tool_calls.1: Unknown tool: delet")


async def test_a_final_answer_is_held_against_its_schema_where_it_was_asked_for(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["n"]}
    replies = [{"reply": {"json": {"answer": text}}} for text in ('{"n": 1}', "{}", "{}")]
    with asking(replies, tmp_path, tools=SPECS) as scene:
        good = await scene.once(agent(outputSchema=schema))
        more = good.part(Continuation)
        assert (more.form_problem, (good.parsed or {})["answer"]) == ("", '{"n": 1}')
        later = agent(conversation=more.conversation, request="")
        assert "'n' is a required property" in str(form_problem(await scene.once(later)))
        assert form_problem(await scene.once(agent())) is None


def form_problem(answer: LlmAnswer) -> str | None:
    """How a final answer violates its schema."""
    return answer.part(Continuation).form_problem


@pytest.mark.parametrize("name", ENDLESS)
def test_a_hostile_schema_holds_no_worker(name: str, tmp_path: Path) -> None:
    schema, value = ENDLESS[name]
    answer = LlmAnswer(text="", model="demo", mode="text")
    said = Conversation(request="Do it.", output_schema=schema)
    talk = Talk(agent(), said, Site(ValueStore(LocalDirectory(tmp_path)), {}, CONTEXT_TOKENS))
    started = time.thread_time()
    found = form_problem(talk.judged(answer, SimpleAnswer(answer=json.dumps(value), tool_calls=[]), seconds=0.3))
    assert time.thread_time() - started < 3
    assert "takes too long" in str(found) or (name in HARMLESS and found == "")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_worker_goes_on_while_a_hostile_schema_is_judged(tmp_path: Path) -> None:
    schema, value = ENDLESS["references that fan out"]
    gaps: list[float] = []

    async def watch() -> None:
        while True:
            before = time.process_time()  # not of the clock: other programs may take the processor meanwhile
            await asyncio.sleep(0.02)
            gaps.append(time.process_time() - before)

    with asking([{"reply": {"json": {"answer": json.dumps(value)}}, "times": 2}], tmp_path, tools=SPECS) as scene:
        await scene.once(agent())  # imports what is imported once
        watching = asyncio.create_task(watch())
        answer = await scene.once(agent(outputSchema=schema))
        await asyncio.sleep(0.1)
        watching.cancel()
    assert "takes too long" in str(form_problem(answer))
    assert max(gaps) < JUDGE_SECONDS * 0.75
