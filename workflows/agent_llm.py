"""Questions to an agent's model: counted, paid for, and corrected a bounded number of times.

A question goes out by reference (`plans.agents.question`): what was said before is kept outside history.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from plans.agents.answers import AgentAnswer, SimpleAnswer
    from plans.agents.llm_request import LlmAnswer, LlmRequest
    from plans.agents.order import limit_reached, request_text
    from plans.agents.question import AgentQuestion, Asked, offered
    from plans.agents.run import AgentRun
    from plans.agents.tasks import TaskList
    from plans.errors import Unanswered
    from plans.llm.answers import parse_complex, parse_simple, parse_tasks
    from plans.llm.json_extraction import AnswerProblem
    from workflows.llm import CORRECTIONS, MENDABLE, call

Answer = TaskList | AgentAnswer | SimpleAnswer


async def answered(agent: AgentRun) -> Answer:
    """The first answer that can be used. Raises Unanswered."""
    asked: Asked = "tasks" if agent.splitting else "simple" if agent.tasks is None else "complex"
    question = AgentQuestion(
        asked=asked,
        tools=agent.tools,
        conversation=agent.conversation,
        request="" if agent.conversation else request_text(agent.order),
        guides=[note for note in agent.run.notes if note.path not in agent.guides_sent],
        outcomes=agent.unsent,
        tasks=agent.tasks,
        notice=agent.notice,
    )
    problem = AnswerProblem(message="")
    for left in range(CORRECTIONS, -1, -1):
        text, found = await _once(agent, question)
        if not isinstance(found, AnswerProblem):
            return found
        problem = found
        told = problem.problems or [problem.message]
        agent.run.note("llm", f"answer {agent.asked} was not accepted: {told[0]}"[:500], workflow.now())
        if left and limit_reached(agent.order.limits, agent.usage) is not None:
            break
        changes = {"last": text[:8_000], "problems": [line[:1_000] for line in told[:20]], "left": left}
        said: dict[str, Any] = {"conversation": agent.conversation, "request": "", "guides": [], "outcomes": []}
        question = question.model_copy(update=changes | (said if agent.conversation else {}))
    raise Unanswered(f"the LLM gave no usable answer: {problem.message}"[:4_000], problems=problem.problems)


async def _once(agent: AgentRun, question: AgentQuestion) -> tuple[str, Answer | AnswerProblem]:
    try:
        answer = await _ask(agent, question)
    except Unanswered as error:
        if error.code not in MENDABLE:
            raise
        return "", AnswerProblem(message=error.message, problems=[error.message])
    agent.conversation = answer.conversation or agent.conversation
    agent.guides_sent += [note.path for note in question.guides]
    if answer.problem:
        return answer.text, AnswerProblem(message=answer.problem, problems=[answer.problem])
    return answer.text, _read(agent, question.asked, answer.text)


def _read(agent: AgentRun, asked: Asked, text: str) -> Answer | AnswerProblem:
    if asked == "tasks":
        return parse_tasks(text)
    tools = {spec.name: spec for spec in offered(agent.tools, agent.run.facts.tools, asked)}
    return parse_simple(text, tools) if asked == "simple" else parse_complex(text, tools)


async def _ask(agent: AgentRun, question: AgentQuestion) -> LlmAnswer:
    agent.asked += 1
    usage = agent.usage
    agent.usage = usage.model_copy(update={"iterations": usage.iterations + 1})
    about = {"tasks": "split the request into tasks", "simple": "work on the request"}.get(question.asked)
    request = LlmRequest(
        purpose="agent",
        agent=question,
        schema_name={"tasks": "tasks", "simple": "simple_answer"}.get(question.asked, "agent_answer"),
    )
    try:
        answer = await call(agent.asked, about or agent.position, request)
    except ActivityError as error:
        cause = error.cause
        code = cause.type if isinstance(cause, ApplicationError) else None
        raise Unanswered(str(getattr(cause, "message", cause or error))[:4_000], code or "LLM_UNAVAILABLE") from error
    agent.run.ledger = agent.run.ledger.plus(answer.usage, model=answer.model)
    agent.usage = agent.usage.model_copy(update={"tokens": agent.usage.tokens + answer.usage.total_tokens})
    return answer
