"""An agent's conversation without a server: what the activity does with it, request after request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plansurvive.features.agents.model.answers import AgentAnswer, SimpleAnswer
from plansurvive.features.agents.model.compaction import Fit, fitted
from plansurvive.features.agents.model.conversation import Conversation, Messages
from plansurvive.features.agents.model.question import AgentQuestion, Outcome, messages_of, repeated
from plansurvive.features.agents.model.tasks import TaskList
from plansurvive.plans.llm.prompt_parts import Guide
from tests.plans.building import TOOLS

WINDOW = 1_000_000


@dataclass
class Talk:
    """One agent's requests. `sent`: the messages of each."""

    asked: str = "complex"
    window: int = WINDOW
    tasks: TaskList | None = None
    said: Conversation = field(default_factory=lambda: Conversation(request="Do it."))
    sent: list[Messages] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)

    def ask(self, *outcomes: Outcome, guides: Sequence[Guide] = (), **fields: Any) -> Fit:
        """Send the next request."""
        question = AgentQuestion.model_validate(
            {"asked": self.asked, "tools": ["note"], "tasks": self.tasks, "request": "", **fields}
        )
        said = self.said.plus(guides, [each.shown() for each in outcomes], question.notice, limit=self.window)
        if question.problems:
            said = said.rejected(question.last, question.problems)
        fit = fitted(said, self.window, lambda of: messages_of(question, of, TOOLS), 0, self.number)
        self.said = fit.said
        self.sent.append(fit.messages)
        self.fits.append(fit)
        return fit

    @property
    def number(self) -> int | None:
        """Number of the current task."""
        return None if self.tasks is None else (self.tasks.position or 0) + 1

    def answer(self, **fields: Any) -> None:
        """The model's answer."""
        kind = SimpleAnswer if self.asked == "simple" else AgentAnswer
        reasoning = fields.pop("reasoning", "") if self.asked == "simple" else ""
        answer = kind.model_validate({"tool_calls": [], **fields})
        self.said = self.said.answered(repeated(answer, f'{{"reasoning": "{reasoning}"}}'), self.number)


def read(call: int, path: str, text: str, **more: Any) -> Outcome:
    """The result of reading a file."""
    return Outcome.model_validate({"tool": "read_file", "call": call, "args": {"path": path}, "text": text, **more})


def calls(*paths: str) -> list[dict[str, Any]]:
    """Calls of an answer."""
    return [{"tool": "read_file", "args": {"path": path}} for path in paths]


def stable(messages: Messages) -> list[tuple[str, str]]:
    """The messages without what changes with every request: the end of the last one."""
    head, last = messages[:-1], messages[-1]["content"]
    at = [last.find(f"=== {title} ===") for title in ("TASK LIST", "NOTICE", "INSTRUCTIONS", "CORRECTION")]
    kept = last[: min(place for place in at if place >= 0)].rstrip()
    return [(each["role"], each["content"]) for each in head] + ([("user", kept)] if kept else [])


def begins_like(messages: Messages, earlier: Messages) -> bool:
    """Whether the messages begin with the stable ones of an earlier request, to the character."""
    kept, own = stable(earlier), [(each["role"], each["content"]) for each in messages]
    if len(own) < len(kept):
        return False
    *whole, last = kept
    role, text = own[len(whole)]
    return own[: len(whole)] == whole and role == last[0] and text.startswith(last[1])
