"""Sends an agent's LLM requests, and has unusable answers corrected.

A request refers to the agent's conversation (`model.prompts`), which is stored outside the history. The
conversation includes a request only if its answer was taken: the run that resumes an interrupted one continues the
conversation before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.features.agents.model.answers import AgentAnswer, SimpleAnswer
from plansurvive.features.agents.model.conversation import UNUSABLE_CHARACTERS
from plansurvive.features.agents.model.order import limit_reached, request_text
from plansurvive.features.agents.model.question import AgentQuestion, Asked, Continuation
from plansurvive.features.agents.model.reading import VALUES
from plansurvive.features.agents.model.run import AgentRun
from plansurvive.features.agents.model.tasks import TaskList
from plansurvive.features.agents.reports import permitted
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.llm.request import LlmAnswer, LlmRequest
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.usage import Usage
from plansurvive.workflows.llm import Rejected, accepted, call_llm, value_of
from plansurvive.workflows.llm_usage import count, failure_of


class AgentReply(NamedTuple):
    """An agent's answer. `form_problem`: how a final answer violates the output schema; empty if it conforms."""

    answer: TaskList | AgentAnswer | SimpleAnswer
    form_problem: str


async def agent_answered(agent: AgentRun) -> AgentReply:
    """The first usable answer of an agent's LLM. Raises Unanswered, also when a limit is reached while correcting."""
    question, session = question_of(agent), agent.cleared
    before, shown = (agent.conversation, agent.guides_of, agent.unsent), list(agent.guides_sent)

    async def ask(rejected: Rejected | None) -> LlmAnswer:
        return await _ask_agent(agent, question, session, rejected)

    def judge(answer: LlmAnswer) -> AgentReply | AnswerProblem:
        value = value_of(answer, VALUES[question.asked])
        if isinstance(value, AnswerProblem):
            return value
        return AgentReply(value, answer.part(Continuation).form_problem or "")

    def note(_: int, problem: str, code: str) -> None:
        text = f"answer {agent.asked} was not accepted: {problem}"
        agent.run.note(LogKind.LLM, text[:500], _now(), code=code)

    def is_over() -> bool:
        return limit_reached(agent.order.limits, agent.usage) is not None

    taken = False
    try:
        reply = await accepted(ask, judge, note, is_over)
        taken = not agent.run.stopped
    finally:
        if not taken:
            agent.conversation, agent.guides_of, agent.unsent = before
            agent.guides_sent = shown if agent.cleared == session else []
    return reply


async def _ask_agent(agent: AgentRun, question: AgentQuestion, session: int, rejected: Rejected | None) -> LlmAnswer:
    """Send one LLM request of an agent with everything the conversation lacks so far. Raises Unanswered.

    `session`: the one that the question's agents.md are of, as counted by `AgentRun.cleared`.
    """
    if rejected is not None:
        question = corrected(agent, question, rejected.text, rejected.problems, rejected.left)
    await permitted(agent, lambda: _characters(agent, question))
    agent.asked += 1
    agent.usage = agent.usage.model_copy(update={"iterations": agent.usage.iterations + 1})
    about = {"tasks": "split the request into tasks", "simple": "work on the request"}.get(question.asked)
    name = {"tasks": "tasks", "simple": "simple_answer", "complex": "agent_answer"}[question.asked]
    request = LlmRequest(purpose="agent", parts={question.feature: question}, schema_name=name)
    began = _now()
    try:
        answer = await call_llm(agent.run, agent.asked, about or agent.position, request)
    except (ActivityError, asyncio.CancelledError) as error:
        failure, usage = failure_of(error) if isinstance(error, ActivityError) else (error, Usage())
        count(agent.run, usage.model_copy(update={"calls": 1}), "", (_now() - began).total_seconds())
        if isinstance(error, ActivityError):
            sent(agent, question, session, _conversation(error))
        raise failure from error
    count(agent.run, answer.usage.model_copy(update={"calls": 1}), answer.model, answer.duration / 1000)
    agent.usage = agent.usage.model_copy(update={"tokens": agent.usage.tokens + answer.usage.total_tokens})
    more = answer.part(Continuation)
    sent(agent, question, session, more.conversation)
    if more.compacted:
        agent.run.note(LogKind.AGENT, _COMPACTED.format(more.compacted), _now())
    return answer


_COMPACTED = "{} earlier results were shortened to a line each in the prompt; the limit is PLANS_CONTEXT_TOKENS"


def _conversation(error: ActivityError) -> LargeValue | None:
    """The conversation that a failed request of an agent stored; None if it did not."""
    details = error.cause.details if isinstance(error.cause, ApplicationError) else ()
    stored = details[0].get("conversation") if details and isinstance(details[0], dict) else None
    try:
        return LargeValue.model_validate(stored) if stored else None
    except ValidationError:
        return None


def _characters(agent: AgentRun, question: AgentQuestion) -> int:
    """How long the prompt may become: the conversation, what is new, and the descriptions of the tools."""
    tools = (agent.run.facts.tools[name] for name in question.tools)
    new = len(question.model_dump_json(exclude={"conversation"}))
    return (question.conversation.bytes if question.conversation else 0) + new + sum(map(_size, tools))


def _size(tool: ToolSpec) -> int:
    return len(tool.description) + len(str(tool.args_schema))


def _now() -> datetime:
    return workflow.now()


SENT_CHARACTERS = 2 * UNUSABLE_CHARACTERS
"""Maximum length of an unusable answer in a question: more than is repeated, since what is not text goes first."""


def question_of(agent: AgentRun) -> AgentQuestion:
    """The next question, with everything that the conversation lacks."""
    asked: Asked = "tasks" if agent.splitting else "simple" if agent.tasks is None else "complex"
    return AgentQuestion(
        asked=asked,
        tools=agent.tools,
        conversation=agent.conversation,
        request="" if agent.conversation else request_text(agent.order),
        output_schema=None if agent.conversation else agent.order.output_schema,
        forget_guides=agent.guides_of != agent.cleared,
        guides=[note for note in agent.run.notes if note.path not in agent.guides_sent],
        outcomes=agent.unsent,
        tasks=agent.tasks,
        notice=agent.notice,
    )


def corrected(
    agent: AgentRun, question: AgentQuestion, answer: str, problems: Sequence[str], left: int
) -> AgentQuestion:
    """The question again, with an unusable answer to it and its problems. `left`: corrections that are left."""
    lines = [line[:1_000] for line in problems[:20]]
    changes: dict[str, Any] = {"last": answer[:SENT_CHARACTERS], "problems": lines, "left": left}
    if agent.conversation != question.conversation:  # it holds what was sent before
        changes |= {"conversation": agent.conversation, "request": "", "output_schema": None, "forget_guides": False}
        changes |= {"guides": [], "outcomes": [], "notice": ""}
    return question.model_copy(update=changes)


def sent(agent: AgentRun, question: AgentQuestion, session: int, conversation: LargeValue | None) -> None:
    """Record that the model was sent a question: the conversation holds its outcomes and guides from now on.

    `session`: the one that the question's agents.md are of, as counted by `AgentRun.cleared`.
    """
    if conversation is None:
        return
    agent.conversation, agent.guides_of, agent.unsent = conversation, session, []
    if session == agent.cleared:  # else the session was cleared meanwhile: what was sent has to come in again
        agent.guides_sent += [note.path for note in question.guides]
