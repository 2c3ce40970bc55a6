"""The next question to an agent's model, made of the agent's run, and what the run remembers of having sent it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plansurvive.features.agents.model.conversation import UNUSABLE_CHARACTERS
from plansurvive.features.agents.model.order import request_text
from plansurvive.features.agents.model.question import AgentQuestion, Asked
from plansurvive.features.agents.model.run import AgentRun
from plansurvive.plans.large_value import LargeValue

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
