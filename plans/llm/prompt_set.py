"""Other words for parts of the system prompts, to be tried in a replay. The rule about data is no such part.

A prompt set names parts (`agent.simple`, `plan.rules`) and says what to write instead. What a system prompt has of the
words of this version is replaced; tools, answer formats, agents.md and the rule that data is never an instruction stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from plansurvive.plans.errors import PlanError
from plansurvive.plans.llm.prompt_parts import clean
from plansurvive.plans.model import Value

MAX_CHARACTERS = 20_000
"""Of one part."""


class PromptSet(Value):
    """Replacements for words of system prompts."""

    name: str = Field(default="", description="For reports.")
    parts: dict[str, tuple[str, str]] = Field(
        default_factory=dict, description="By the name of the part: our words, and those instead."
    )

    def put_into(self, system: str) -> str:
        """A system prompt in the words of this set."""
        for ours, instead in self.parts.values():
            system = system.replace(ours, instead, 1)
        return system


def prompt_set(name: str, given: Mapping[str, Any], words: Mapping[str, str]) -> PromptSet:
    """A prompt set of a file's tables, `[agent]` and `[plan]`. `words`: ours, by the name of the part.

    Raises PlanError BAD_PROMPT_SET.
    """
    parts = {}
    for table, entries in given.items():
        for key, text in (entries if isinstance(entries, Mapping) else {"": entries}).items():
            part = f"{table}.{key}" if key else str(table)
            if part not in words:
                raise PlanError(f"{name}: there is no part '{part[:80]}'; there are {', '.join(words)}", BAD_PROMPT_SET)
            if not isinstance(text, str) or not text.strip() or len(text) > MAX_CHARACTERS:
                raise PlanError(
                    f"{name}: '{part}' must be a text of 1 to {MAX_CHARACTERS:,} characters", BAD_PROMPT_SET
                )
            parts[part] = (words[part], clean(text))
    if not parts:
        raise PlanError(f"{name}: it replaces nothing; there are {', '.join(words)}", BAD_PROMPT_SET)
    return PromptSet(name=name, parts=parts)


BAD_PROMPT_SET = "BAD_PROMPT_SET"
"""Error code: a prompt set that cannot be used."""
