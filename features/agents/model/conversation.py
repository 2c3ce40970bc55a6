"""What an agent and its model have said so far, and the messages of the next request made of it.

The messages are laid out for prompt caches, which reuse the longest beginning that two requests share: the system
prompt and the user's request first, then each answer of the model and what it was told in return, in the order in which
they came, and last what changes with every request (`prompts`). What was sent once stays as it was, unless it is
shortened (`compaction`). User and assistant take turns strictly, since some endpoints accept nothing else.

It is stored outside history and read by later versions of this program: fields may be added with defaults, never
renamed or removed.

Rejected: one message composed each time, of which a provider reuses little, and a summary of old results by the model,
which costs a request and may leave out what matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from plansurvive.features.agents.model.prompts import notice_section, request_section
from plansurvive.plans.llm.prompt_parts import (
    READ_RESULT,
    RESULTS_CHARACTERS,
    Guide,
    ToolOutcome,
    clean,
    joined,
    one_line,
    outcome_text,
    section,
)
from plansurvive.plans.model import Value
from plansurvive.plans.text.lists import number_of

UNUSABLE_CHARACTERS = 4_000
"""Maximum length of an answer that was not usable, as it is repeated to the model."""
LEAST_SHARE = 200
"""Least characters that a result is cut to."""
TOKENS_PER_BYTE = 0.25
"""Tokens of a byte of UTF-8, until an endpoint has counted some: four characters of English, 1.3 of Chinese."""
Messages = list[dict[str, str]]


class Turn(Value):
    """One answer of the model, and what it was told in return. The first has no answer: it follows the request."""

    said: str = Field(default="", description="The model's answer, with long parts cut.")
    task: int | None = Field(default=None, description="Number of the task that was current.")
    outcomes: list[ToolOutcome] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list, description="Why the answer was not usable.")
    notice: str = Field(default="", description="What the orchestrator remarked.")

    @property
    def told(self) -> str:
        """What the model was told, as text; empty if nothing."""
        results = "\n".join(outcome_text(outcome) for outcome in self.outcomes)
        problems = "\n".join(f"- {one_line(problem)}" for problem in self.problems)
        return joined(
            [
                section("TOOL RESULTS", results) if results else "",
                section("PROBLEMS", problems) if problems else "",
            ]
        )


class EarlierCall(Value):
    """A line that remains of a compacted turn: a call with its result, or the reasoning of a task that was current."""

    line: str
    call: int | None = None
    thought: bool = Field(default=False, description="It is reasoning, of the task with this number.")
    task: int | None = None


class Conversation(Value):
    """The conversation so far, as far as the next prompt needs it."""

    request: str = ""
    output_schema: dict[str, Any] | None = Field(default=None, description="JSON Schema of the final answer.")
    guides: list[Guide] = Field(default_factory=list)
    outcomes: list[ToolOutcome] = Field(
        default_factory=list, description="Results, in conversations of versions that kept no answers."
    )
    turns: list[Turn] = Field(default_factory=list)
    earlier: list[EarlierCall] = Field(default_factory=list, description="What remains of compacted turns.")
    left_out: int = Field(default=0, description="Lines of `earlier` that were left out.")
    left_out_to: int = Field(default=0, description="The last call among them.")
    ratio: float = Field(default=TOKENS_PER_BYTE, description="Tokens per byte, as the endpoint last counted.")
    window: int | None = Field(default=None, description="Tokens that the endpoint has shown to be its limit.")

    @property
    def has_begun(self) -> bool:
        """Whether the model has answered, or been told a result."""
        return bool(self.outcomes or self.earlier or self.left_out) or any(
            turn.said or turn.outcomes for turn in self.turns
        )

    def about(self, request: str, output_schema: dict[str, Any] | None) -> Conversation:
        """The conversation with the request and the schema of its answer, which only the first question has."""
        changes = {"request": request, "output_schema": output_schema}
        return self.model_copy(update={name: value for name, value in changes.items() if value})

    def without_guides(self) -> Conversation:
        """The conversation of a cleared session: its agents.md texts come in again."""
        return self.model_copy(update={"guides": []})

    def plus(
        self, guides: Sequence[Guide] = (), outcomes: Sequence[ToolOutcome] = (), notice: str = "", limit: int = 0
    ) -> Conversation:
        """Add what the model is told next. `limit`: most characters of the new results; 0: the usual limit."""
        turns = self.turns or [Turn(outcomes=self.outcomes)]
        told = [*turns[-1].outcomes, *bounded(outcomes, min(limit or RESULTS_CHARACTERS, RESULTS_CHARACTERS))]
        last = turns[-1].model_copy(update={"outcomes": told, "notice": notice or turns[-1].notice})
        by_path = {guide.path: guide for guide in [*self.guides, *guides]}
        merged = sorted(by_path.values(), key=lambda guide: (guide.path.count("/"), guide.path))
        return self.model_copy(update={"turns": [*turns[:-1], last], "outcomes": [], "guides": merged})

    def answered(self, said: str, task: int | None) -> Conversation:
        """Add the model's answer."""
        return self.model_copy(update={"turns": [*self.turns, Turn(said=said, task=task)]})

    def rejected(self, said: str, problems: Sequence[str]) -> Conversation:
        """Add an answer that was not usable, and why. The model corrects what it can see."""
        text = clean(said)
        shown = text if len(text) <= UNUSABLE_CHARACTERS else f"{text[:UNUSABLE_CHARACTERS]}...[cut]"
        turn = Turn(said=shown or "(an empty answer)", problems=list(problems))
        return self.model_copy(update={"turns": [*self.turns, turn]})

    def messages(self, system: str, end: str) -> Messages:
        """The messages of the next request, which ends in `end`."""
        turns = self.turns or [Turn()]
        told = joined([request_section(self.request), self._earlier()])
        made: Messages = [_message("system", system)]
        for turn in turns:
            if turn.said:
                made += [_message("user", told or "Noted."), _message("assistant", turn.said)]
                told = ""
            told = joined([told, turn.told, "" if turn is turns[-1] else notice_section(turn.notice)])
        return [*made, _message("user", joined([told, end]))]

    def _earlier(self) -> str:
        if not self.earlier and not self.left_out:
            return ""
        calls = f", calls 1 to {self.left_out_to}" if self.left_out_to else ""
        gone = f"[{number_of(self.left_out, 'line')} left out{calls}]" if self.left_out else ""
        rows = [_EARLIER, gone, *(each.line for each in self.earlier)]
        return section("EARLIER CALLS", "\n".join(filter(None, rows)))


_EARLIER = (
    "Shortened to a line each, oldest first, because the context limit was near."
    f' {READ_RESULT} with {{"call": number}} shows the whole result of a call again.'
)


def bounded(outcomes: Sequence[ToolOutcome], limit: int) -> list[ToolOutcome]:
    """Results that have at most `limit` characters together: those that are longer than their share are cut to it.

    A share of less than LEAST_SHARE is not worth its block: then the text is left out, and its length said.
    """
    left, shares = limit, {}
    by_length = sorted(range(len(outcomes)), key=lambda index: len(outcomes[index].text))
    for place, index in enumerate(by_length):
        shares[index] = min(len(outcomes[index].text), left // (len(outcomes) - place))
        left -= shares[index]
    return [_cut(outcome, shares[index]) for index, outcome in enumerate(outcomes)]


def _cut(outcome: ToolOutcome, limit: int) -> ToolOutcome:
    if len(outcome.text) <= limit:
        return outcome
    limit = limit if limit >= LEAST_SHARE else 0
    return outcome.model_copy(update={"text": outcome.text[:limit], "length": outcome.length or len(outcome.text)})


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
