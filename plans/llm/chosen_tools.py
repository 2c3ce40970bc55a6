"""Which tools of servers a model is shown in full, when there are more than a prompt has room for.

By relevance: how many words of the request occur in a tool's name, and then in its description. A server that stuffs
its description with words wins little, as each word counts once and words in many tools count less. Tools that are
equally relevant take turns by server, so that a server with hundreds of them does not crowd out the others. The same
request gives the same choice: prompts are cached by their beginning.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from plansurvive.plans.model import ToolSpec

MAX_WHOLE = 48_000
"""Characters of all tools that are shown in full."""
MAX_SAID = 12_000
"""Characters of what is shown of one tool."""
MAX_NAMED = 300
"""Tools that are shown by name only."""
_WORD = re.compile(r"[a-z0-9]+")
_NAME_WEIGHT = 4


class Chosen(NamedTuple):
    """The tools of servers for a prompt, each list sorted by name."""

    whole: list[ToolSpec]
    """Those that are shown in full."""
    named: list[ToolSpec]
    """Those that are shown by name."""
    left_out: int


class Offered(NamedTuple):
    """All tools that a model is offered: with their schemas, and by name only."""

    whole: list[ToolSpec]
    named: list[ToolSpec]

    @classmethod
    def of(cls, tools: Iterable[ToolSpec], about: str) -> Offered:
        """The same choice as in the prompt (`plans.llm.prompt_parts.tools_text`)."""
        specs = list(tools)
        chosen = chosen_tools(specs, about)
        return cls(_sorted([*(spec for spec in specs if not spec.server), *chosen.whole]), chosen.named)


def chosen_tools(tools: Iterable[ToolSpec], about: str) -> Chosen:
    """The choice among the tools of servers for a request; our own tools are not part of it."""
    left, whole, rest = MAX_WHOLE, list[ToolSpec](), list[ToolSpec]()
    for spec in _by_relevance([spec for spec in tools if spec.server], about):
        length = len(said_of(spec))
        if length <= left:
            left -= length
            whole.append(spec)
        else:
            rest.append(spec)
    return Chosen(_sorted(whole), _sorted(rest[:MAX_NAMED]), max(0, len(rest) - MAX_NAMED))


def said_of(spec: ToolSpec) -> str:
    """What a server says of its tool, as JSON on one line, for a prompt; a long schema is cut."""
    said = {"description": spec.description, "args": spec.args_schema}
    if spec.value_schema is not None:
        said["value"] = spec.value_schema
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= MAX_SAID else f"{text[:MAX_SAID]}...[cut]"


def _sorted(specs: Iterable[ToolSpec]) -> list[ToolSpec]:
    return sorted(specs, key=lambda spec: spec.name)


def _by_relevance(specs: Sequence[ToolSpec], about: str) -> list[ToolSpec]:
    wanted = _words(about)
    in_names = {spec.name: _words(spec.name) & wanted for spec in specs}
    in_texts = {spec.name: _words(spec.description) & wanted for spec in specs}
    spread = Counter(word for spec in specs for word in in_names[spec.name] | in_texts[spec.name])
    scores = {
        spec.name: sum(_NAME_WEIGHT / spread[word] for word in sorted(in_names[spec.name]))
        + sum(1 / spread[word] for word in sorted(in_texts[spec.name]))
        for spec in specs
    }
    turns, turn = Counter[tuple[str, float]](), dict[str, int]()
    for spec in sorted(specs, key=lambda each: each.name):
        key = (spec.server, scores[spec.name])
        turn[spec.name] = turns[key]
        turns[key] += 1
    return sorted(specs, key=lambda each: (-scores[each.name], turn[each.name], each.name))


def _words(text: str) -> set[str]:
    """The words of a text, in lower case and without a plural's s; `listIssues` has two."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return {word.removesuffix("s") for word in _WORD.findall(spaced.lower()) if len(word) > 2}
